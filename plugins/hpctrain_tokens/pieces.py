"""Fixed parts of the input: byte ranges of lines, groups of rows. Who works on one does not matter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from hpctrain_tokens import columnar, safely
from hpctrain_tokens.sources import Source

SIZE = 8 << 20
"""Bytes of a piece. It decides where shards end, so it never depends on the machine or its workers."""

PART = 1 << 20
"""Lines are handed on by so many bytes, or one by one where they are longer."""

LONGEST = 16 << 20
"""A longer row is an error: the reference engine holds 130 times its bytes to take it apart, here 2 GB."""


@dataclass(frozen=True)
class Piece:
    """Rows of one file: the lines that begin in [start, stop), or the groups of rows with these numbers."""

    number: int
    source: int
    path: str
    kind: str
    start: int
    stop: int
    content: str = ""
    """The SHA-256 of the file, where bytes of a group cannot be told apart."""


@dataclass
class Row:
    """One row as it was read: `number` counts in its piece from 1; `raw` is None where it is too long."""

    number: int
    raw: bytes | None
    values: dict[str, object] | None = None
    """The row itself, from files that hold columns."""


def divide(sources: list[Source], plain: dict[int, Path]) -> list[Piece]:
    """Every piece of the input, in order; `plain` has the unpacked form of those that are packed."""
    pieces: list[Piece] = []
    for index, source in enumerate(sources):
        path = plain.get(index, source.path)
        columns = source.kind in ("parquet", "arrow")
        content = safely.sha256(path) if columns else ""
        spans = columnar.groups(path, source.kind) if columns else _ranges(path.stat().st_size)
        for start, stop in spans:
            pieces.append(Piece(len(pieces), index, str(path), source.kind, start, stop, content))
    return pieces


def _ranges(size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size, SIZE):
        yield start, min(start + SIZE, size)


class Lines:
    """The whole lines that data begins with; `before` counts those of the piece that stand before them."""

    def __init__(self, before: int, data: bytes) -> None:
        self.before, self.data = before, data
        self.ends = list(_ends(data)) or [len(data)]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where each line begins and where the next one does."""
        return pairwise([0, *self.ends])

    def __iter__(self) -> Iterator[Row]:
        for number, (start, stop) in enumerate(self.spans(), self.before + 1):
            yield Row(number, self.data[start:stop])


def _ends(data: bytes) -> Iterator[int]:
    at = 0
    while at := data.find(b"\n", at) + 1:
        yield at


class Reading:
    """The rows of a piece, and when they are read to the end the number of lines and their digest."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.rows = 0
        self._hash = hashlib.sha256(f"{piece.content} {piece.start} {piece.stop}".encode())
        if not piece.content:
            self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """What the piece holds, as a name; after the last row."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[Row]:
        for part in self.parts():
            yield from part

    def parts(self) -> Iterator[Iterable[Row]]:
        """The rows of the piece, many at a time."""
        if self.piece.content:
            yield self._column_rows()
            return
        with Path(self.piece.path).open("rb") as file:
            yield from self._lines(file)

    def _column_rows(self) -> Iterator[Row]:
        piece = self.piece
        for values in columnar.rows(piece.path, piece.kind, piece.start, piece.stop):
            self.rows += 1
            yield Row(self.rows, None, values)

    def _lines(self, file: BinaryIO) -> Iterator[Iterable[Row]]:
        at = _begin(file, self.piece.start)
        if at == 0 and file.read(3) == b"\xef\xbb\xbf":
            at = 3  # a byte order mark is how some editors begin a file, not a part of its first row
            self._hash.update(b"\xef\xbb\xbf")
        lines: Iterable[Row]
        while part := self._part(file, at):
            if b"\n" in part:
                lines = whole = Lines(self.rows, part)
                self._hash.update(memoryview(part)[: whole.ends[-1]])
                self.rows += len(whole.ends)
                at += whole.ends[-1]
            else:
                file.seek(at)
                lines = self._line(file)
                at = file.tell()
            yield lines

    def _part(self, file: BinaryIO, at: int) -> bytes:
        """What is read at once; a line that it cuts is read again with the next part."""
        file.seek(at)
        return file.read(max(0, min(PART, self.piece.stop - at)))

    def _line(self, file: BinaryIO) -> Iterable[Row]:
        """A long line, or one that goes on behind the piece, or that nothing ends."""
        line = file.readline(LONGEST)
        self._hash.update(line)
        whole = line.endswith(b"\n") or len(line) < LONGEST
        if not whole:
            self._skip(file)
        self.rows += 1
        return Lines(self.rows - 1, line) if whole else (Row(self.rows, None),)

    def _skip(self, file: BinaryIO) -> None:
        """Leave the rest of a line that is too long."""
        while part := file.readline(safely.BLOCK):
            self._hash.update(part)
            if part.endswith(b"\n"):
                return


def _begin(file: BinaryIO, start: int) -> int:
    """Where the first line that begins at or after `start` begins."""
    if start == 0:
        return 0
    file.seek(start - 1)
    while part := file.readline(safely.BLOCK):
        if part.endswith(b"\n"):
            break
    return file.tell()


def digest(piece: Piece) -> str:
    """What a piece holds, as a name, without making rows of it."""
    reading = Reading(piece)
    if not piece.content:
        for _ in reading:
            pass
    return reading.digest
