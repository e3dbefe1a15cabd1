"""What a stream can show: colour, letters, width. Decided once, each stream on its own."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING

from hpctrain.ui.text import clean, clip, fold, reflow, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

FLOOR = 36
PIPE = 100
_STYLES = {"ok": "32", "error": "1;31", "warn": "33", "name": "36", "heading": "1"}
_AMBIGUOUS = ("zh", "ja", "ko")
"""Languages whose terminals may draw our symbols two cells wide."""


class Term:
    """A stream with the answers to every question of looks; treat it as frozen.

    `clips` is false for a pipe: its lines are as long as their values. `plain` asks for lines that
    a screen reader can follow. `progress` is "bar" (redrawn in place), "plain" or "none", and
    `pause` the seconds between two redraws.
    """

    __slots__ = ("ascii", "clips", "color", "pause", "plain", "progress", "stream", "width")

    def __init__(
        self,
        stream: TextIO,
        *,
        color: bool = False,
        ascii: bool = False,  # noqa: A002  (the option's name)
        width: int = PIPE,
        clips: bool = False,
        plain: bool = False,
        progress: str = "plain",
        pause: float = 0.25,
    ) -> None:
        self.stream = stream
        self.color = color
        self.ascii = ascii
        self.width = width
        self.clips = clips
        self.plain = plain
        self.progress = progress
        self.pause = pause

    @classmethod
    def of(
        cls,
        stream: TextIO,
        environ: Mapping[str, str],
        *,
        color: bool | None = None,
        ascii: bool | None = None,  # noqa: A002
        plain: bool | None = None,
    ) -> Term:
        """Decide from the stream, the environment and the options; None: not given."""
        terminal = stream.isatty()
        dumb = environ.get("TERM") == "dumb"
        simple = plain if plain is not None else bool(environ.get("ACCESSIBLE")) or dumb
        width = _number(environ.get("COLUMNS", "")) or (_columns(stream) if terminal else None)
        return cls(
            stream,
            color=_colored(environ, terminal) if color is None else color,
            ascii=_needs_ascii(environ) if ascii is None else ascii,
            width=PIPE if width is None else max(FLOOR, width),
            clips=width is not None,
            plain=simple,
            progress=_progress(environ, in_place=terminal and not simple),
            pause=1.0 if environ.get("SSH_CONNECTION") else 0.25,
        )

    def narrowed(self, width: int) -> Term:
        """The same stream as if it were `width` columns wide."""
        narrow = copy.copy(self)
        narrow.width = width
        return narrow

    def paint(self, style: str, text: str) -> str:
        """`text` in the colour of a role: ok, error, warn, name, heading; "" leaves it alone."""
        if not self.color or not style or not text:
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def text(self, value: str) -> str:
        """`value` safe to print on this stream, in letters that it can show."""
        return fold(clean(value)) if self.ascii else clean(value)

    def fit(self, text: str, used: int = 0) -> str:
        """`text` clipped to the width beside `used` cells; whole in a pipe."""
        return clip(text, self.width - used, self.mark) if self.clips else text

    def wrapped(self, text: str) -> list[str]:
        """A line of words, broken where the terminal ends; whole in a pipe."""
        return wrap(text, self.width) if self.clips else [text]

    def reflowed(self, text: str) -> list[str]:
        """Paragraphs broken where the terminal ends; lines that are set in stay as they are."""
        return reflow(text, self.width) if self.clips else text.splitlines()

    @property
    def mark(self) -> str:
        """What stands for what was left out."""
        return ".." if self.ascii else "…"

    def write(self, *lines: str) -> None:
        """Write lines, each with its line break, to the terminal."""
        self.send("".join(f"{line}\n" for line in lines))

    def send(self, text: str) -> None:
        """Write `text` as it is, with `?` for letters that the stream's encoding lacks."""
        try:
            self.stream.write(text)
        except UnicodeEncodeError:
            encoding = self.stream.encoding or "ascii"
            self.stream.write(text.encode(encoding, "replace").decode(encoding))
        self.stream.flush()


def _is_set(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "") not in ("", "0")


def _colored(environ: Mapping[str, str], terminal: bool) -> bool:
    if environ.get("NO_COLOR"):
        return False
    if _is_set(environ, "CLICOLOR_FORCE") or _is_set(environ, "FORCE_COLOR"):
        return True
    return terminal and environ.get("TERM") != "dumb"


def _needs_ascii(environ: Mapping[str, str]) -> bool:
    # The stream's encoding must not decide: it says utf-8 under LC_ALL=C, where tmux draws holes.
    if _is_set(environ, "HPCTRAIN_ASCII") or environ.get("TERM") in ("linux", "dumb"):
        return True
    locale = (environ.get("LC_ALL") or _ctype(environ) or environ.get("LANG") or "").lower()
    if "utf-8" not in locale and "utf8" not in locale:
        return True
    return locale.split(".")[0].split("_")[0] in _AMBIGUOUS


def _ctype(environ: Mapping[str, str]) -> str:
    """LC_CTYPE, unless Python itself set it because the locale is C."""
    ctype = environ.get("LC_CTYPE", "")
    plain = environ.get("LANG", "") in ("", "C", "POSIX")
    return "" if plain and ctype in ("C.UTF-8", "C.utf8", "UTF-8") else ctype


def _progress(environ: Mapping[str, str], in_place: bool) -> str:
    choice = environ.get("HPCTRAIN_PROGRESS", "")
    if choice == "0":
        return "none"
    return choice if choice in ("plain", "bar") else "bar" if in_place else "plain"


def _number(text: str) -> int | None:
    return int(text) or None if text.isascii() and text.isdigit() and len(text) < 6 else None


def _columns(stream: TextIO) -> int | None:
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # a terminal that does not know, or a stream without a number
        return None
