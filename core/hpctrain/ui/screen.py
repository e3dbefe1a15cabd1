"""The whole terminal, for as long as a program shows something that changes; afterwards it is as it was."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from hpctrain.ui.term import Term

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
CLEAR = "\x1b[2J"
USUAL_HEIGHT = 24
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
"""Around a frame: a terminal that knows them shows it at once, others ignore them."""


class Screen:
    """Rows on the alternate screen, and the keys that are typed meanwhile; use it in a `with`.

    The terminal is given back however the block is left. While it is stopped (Ctrl-Z) it is given back too.
    """

    def __init__(self, term: Term) -> None:
        self.term = term
        self._rows: list[str] = []
        self._width = 0
        self._saved: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wake = (-1, -1)

    def __enter__(self) -> Screen:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(reader, False)
        self._wake = (reader, writer)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number, handler in ((signal.SIGWINCH, _noticed), (signal.SIGTSTP, self._stopped)):
            self._handlers[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        for descriptor in self._wake:
            os.close(descriptor)
        with contextlib.suppress(OSError):  # the terminal may be gone
            self._give_back()

    @property
    def height(self) -> int:
        """Rows of the terminal as it is now."""
        try:
            return os.get_terminal_size(self.term.stream.fileno()).lines or USUAL_HEIGHT
        except OSError:
            return USUAL_HEIGHT

    def show(self, rows: list[str], width: int) -> None:
        """Draw these rows; only those that have changed are sent, all in a window of another width."""
        if width != self._width:
            self._rows, self._width = [], width
            self.term.send(CLEAR)
        changed = [
            f"\x1b[{number};1H\x1b[K{row}"  # erased first: behind a full row the last letter would go
            for number, row in enumerate(rows, start=1)
            if number > len(self._rows) or self._rows[number - 1] != row
        ]
        if len(rows) < len(self._rows):
            changed.append(f"\x1b[{len(rows) + 1};1H\x1b[J")
        if changed:
            self.term.send(BEGIN + "".join(changed) + END)
        self._rows = list(rows)

    def keys(self, seconds: float) -> str:
        """What was typed within this time; it ends at once with a key, and when the window changes."""
        keyboard = sys.stdin.fileno()
        if self._saved is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([keyboard, self._wake[0]], [], [], seconds)
        if self._wake[0] in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake[0], 1024)
        if keyboard not in ready:
            return ""
        typed = os.read(keyboard, 1024).decode("utf-8", "replace")
        return typed or "\x04"  # the terminal was closed

    def _take(self) -> None:
        if sys.stdin.isatty():
            self._saved = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        self.term.send(ENTER)
        self._width = 0  # what stands there is not ours

    def _give_back(self) -> None:
        if self._saved is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)
            self._saved = None
        self.term.send(LEAVE)

    def _stopped(self, *_: object) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()  # it goes on


def _noticed(*_: object) -> None:
    """The pipe wakes who waits for keys."""
