"""Take secrets out of text: the values that we know, and the shapes that everybody knows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpctrain.runfile.judging.tokens import SHAPES

HIDDEN = "***"

SHORTEST = 4
"""Shorter values are left: taking "a" out of a log destroys the log and hides nothing."""


def scrub(text: str, values: Iterable[str] = ()) -> str:
    """`text` with every known value and every token of a well-known shape replaced by `***`."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return re.sub(SHAPES, _hide, text)


class Sink:
    """Takes the secrets that we know out of a stream of bytes, wherever it is cut.

    Shapes are left to `scrub`: a stream may be gigabytes of a program's own log.
    """

    def __init__(self, values: Iterable[str]) -> None:
        every = {value.encode() for value in values if len(value) >= SHORTEST}
        self._values = sorted(every, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._values)))
        self._begun = b""
        """The end of what came last, as far as a secret may begin there."""

    def feed(self, data: bytes) -> bytes:
        """More bytes, and what may be written now; b"" is the end."""
        if not self._values:
            return data
        text = self._begun + data
        undecided = self._undecided(text, 0) if data else len(text)
        parts, written = [], 0
        if any(value in text for value in self._values):
            for match in self._pattern.finditer(text):
                if match.start() >= undecided:
                    break
                parts += [text[written : match.start()], HIDDEN.encode()]
                written = match.end()
        end = self._undecided(text, written) if data else len(text)
        self._begun = text[end:]
        return b"".join((*parts, text[written:end]))

    def _undecided(self, text: bytes, start: int) -> int:
        """Where, at the end of `text`, a secret may begin that is not all there yet."""
        first = max(start, len(text) - len(self._values[0]) + 1)
        tails = (at for at in range(first, len(text)) if any(v.startswith(text[at:]) for v in self._values))
        return next(tails, len(text))


def _hide(match: re.Match[str]) -> str:
    named = match["named"]
    return match[0].replace(named, HIDDEN) if named else HIDDEN
