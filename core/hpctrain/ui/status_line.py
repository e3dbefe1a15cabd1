"""One line below what a command prints: redrawn in place on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hpctrain.ui.term import Term

PLAIN_EVERY = 60.0


class StatusLine:
    """Use it in a `with`; `hide` it before anything else is printed, `show` it again behind that.

    The terminal is asked for at each time, since people make their windows wider.
    """

    def __init__(self, terminal: Callable[[], Term], clock: Callable[[], float] = time.monotonic) -> None:
        self.terminal = terminal
        self.clock = clock
        self._drawn = ""
        self._topic = ""
        self._spoken = -1e9

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def show(self, line: Callable[[Term], str], topic: str) -> None:
        """Draw the line; where lines stay, once a minute and whenever the `topic` is another."""
        term, now = self.terminal(), self.clock()
        if term.progress == "bar":
            text = line(term.narrowed(term.width - 1))  # behind the last column, it would wrap
            if text != self._drawn and now - self._spoken >= term.pause:
                term.send(f"\r\x1b[K{text}")
                self._drawn, self._spoken = text, now
        elif term.progress == "plain" and (topic != self._topic or now - self._spoken >= PLAIN_EVERY):
            self._topic, self._spoken = topic, now
            term.write(line(term))

    def hide(self) -> None:
        """Take the line away, where it is drawn in place."""
        if self._drawn:
            self.terminal().send("\r\x1b[K")
            self._drawn, self._spoken = "", -1e9
