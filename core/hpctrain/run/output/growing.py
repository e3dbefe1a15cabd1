"""A file that another program appends to, read a piece at a time: a log of any shape costs little."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

LONGEST = 1 << 20
"""Bytes of one line that are kept, its last: a program that never ends a line fills no memory."""
BLOCK = 1 << 20
MOST = 64 << 20
"""Bytes that are read at once; a program that prints in a loop fills a disk, not our memory."""


class Growing:
    """The lines that a file has gained since it was read last.

    `most` are the bytes that are read at once: of more than that only the last are shown. A file that is
    shorter than it was is read from its beginning, and one that is not there yet has no lines.
    """

    def __init__(self, path: Path, position: int = 0, *, most: int = MOST) -> None:
        self.path = path
        self.position = position
        """Where the next reading begins."""
        self.most = most
        self._torn = b""

    def lines(self) -> list[str]:
        """The whole lines after the last reading, without their ends."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size < self.position:
                    self.position, self._torn = 0, b""
                if size - self.position > self.most:
                    self.position, self._torn = size - self.most, b""
                file.seek(self.position)
                return self._read(file.read, size - self.position)
        except FileNotFoundError:
            return []

    def torn_end(self) -> list[str]:
        """The last line, where nobody ended it; once, and when no more is expected."""
        torn, self._torn = self._torn, b""
        return [_text(torn)] if torn else []

    def _read(self, read: Callable[[int], bytes], gained: int) -> list[str]:
        lines: list[str] = []
        while gained > 0 and (block := read(min(BLOCK, gained))):
            gained -= len(block)
            lines += self._lines_of(block)
        return lines

    def _lines_of(self, block: bytes) -> list[str]:
        """The lines that end in the next bytes of the file."""
        self.position += len(block)
        *whole, torn = block.split(b"\n")
        if whole:
            whole[0] = self._torn + whole[0]
            self._torn = torn
        else:
            self._torn += torn
        self._torn = self._torn[-LONGEST:]
        return [_text(line) for line in whole]

    def all_lines(self) -> Iterator[str]:
        """Every line that is there now, the torn one at the end too: a file of any size in little memory."""
        with self.path.open("rb") as file:
            left = file.seek(0, 2) - self.position
            file.seek(self.position)
            while left > 0 and (block := file.read(min(BLOCK, left))):
                left -= len(block)
                yield from self._lines_of(block)
        yield from self.torn_end()


def _text(line: bytes) -> str:
    return line[-LONGEST:].decode("utf-8", "replace")


def start_of_last(path: Path, count: int, most: int = MOST) -> int:
    """Where the last `count` lines begin, of those that `most` bytes hold."""
    with path.open("rb") as file:
        position = file.seek(0, os.SEEK_END)
        least = max(0, position - most)
        file.seek(max(0, position - 1))
        ends_wanted = count + (file.read(1) == b"\n")
        while ends_wanted and position > least:
            size = min(BLOCK, position - least)
            position -= size
            file.seek(position)
            block = file.read(size)
            ends = block.count(b"\n")
            if ends >= ends_wanted:
                at = len(block)
                for _ in range(ends_wanted):
                    at = block.rfind(b"\n", 0, at)
                return position + at + 1
            ends_wanted -= ends
        return position


def every_line(path: Path) -> Iterator[str]:
    """All lines of a file, one after the other."""
    return Growing(path).all_lines()
