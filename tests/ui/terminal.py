"""A terminal as the tests read it: what stands on each row after all that was sent. Not a whole VT100."""

from __future__ import annotations

import re

TOKEN = re.compile(r"\x1b\[[?]?[\d;]*[A-Za-z]|[^\x1b]", re.DOTALL)
IGNORED = ("m", "?25h", "?25l", "?2026h", "?2026l")


class Terminal:
    """Two screens of a size; `feed` what a program writes, read `rows`."""

    def __init__(self, columns: int, height: int, *, alternate: bool = False) -> None:
        self.columns, self.height = columns, height
        self.alternate = alternate
        self._screens = {False: self._empty(), True: self._empty()}
        self._places = {False: (0, 0), True: (0, 0)}
        self._row = self._column = 0

    def _empty(self) -> list[list[str]]:
        return [[" "] * self.columns for _ in range(self.height)]

    @property
    def rows(self) -> list[str]:
        """The rows of the screen that is shown."""
        return ["".join(row).rstrip() for row in self._screens[self.alternate]]

    def feed(self, text: str) -> None:
        for token in TOKEN.findall(text):
            if token.startswith("\x1b"):
                self._obey(token[2:])
            elif token == "\r":
                self._column = 0
            elif token == "\n":
                self._row = min(self._row + 1, self.height - 1)
            elif token.isprintable():
                assert self._column < self.columns, f"{token!r} is behind the last column: {self.rows}"
                self._screens[self.alternate][self._row][self._column] = token
                self._column += 1

    def _obey(self, code: str) -> None:
        screen, numbers = self._screens[self.alternate], [int(n) for n in re.findall(r"\d+", code)]
        if code in ("?1049h", "?1049l"):
            self._places[self.alternate] = self._row, self._column
            self.alternate = code.endswith("h")
            self._row, self._column = self._places[self.alternate]
        elif code.endswith("H"):
            self._row, self._column = numbers[0] - 1, numbers[1] - 1
            assert self._row < self.height
        elif code.endswith("G"):
            self._column = numbers[0] - 1
        elif code == "K":
            screen[self._row][self._column :] = [" "] * (self.columns - self._column)
        elif code == "J":
            for row in range(self._row, self.height):
                screen[row] = [" "] * self.columns
        elif code == "2J":
            self._screens[self.alternate] = self._empty()
        else:
            assert code.endswith(IGNORED), f"the tests do not know {code!r}"
