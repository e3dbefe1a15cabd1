"""The columns of a Parquet file, from its footer, with the standard library alone.

The footer is Thrift's compact protocol. Only its second field is read, a list of elements in depth-first
order: the root, then each column with its own elements behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"PAR1"
SCHEMA = 2
NAME, CHILDREN = 4, 5
"""Fields of an element."""

BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 3, 7, 8, 9, 10, 11, 12
"""Types of the protocol whose values have bytes of their own; 1 and 2 are true and false."""


def columns(path: Path) -> list[str]:
    """The names of the top level; ValueError where this is not a complete Parquet file."""
    try:
        elements = _schema(_Compact(_footer(path)))
        names, at = [], 1
        for _ in range(elements[0].get(CHILDREN, 0)):
            names.append(elements[at][NAME].decode())
            at = _behind(elements, at)
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} is not a complete Parquet file") from None
    return names


def _footer(path: Path) -> bytes:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > size - 12:
            raise ValueError(f"{path} is not a complete Parquet file")
        file.seek(size - 8 - length)
        return file.read(length)


def _schema(reader: _Compact) -> list[dict[int, Any]]:
    for number, kind in reader.fields():
        if number == SCHEMA:
            return [dict(reader.struct()) for _ in range(reader.count())]
        reader.value(kind)
    return []


def _behind(elements: list[dict[int, Any]], at: int) -> int:
    """The place behind an element and all below it."""
    behind = at + 1
    for _ in range(elements[at].get(CHILDREN, 0)):
        behind = _behind(elements, behind)
    return behind


class _Compact:
    """A reader of Thrift's compact protocol: it returns one value after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """The next value, a whole number of variable length (varint)."""
        value = 0
        for shift in range(0, 64, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise IndexError

    def signed(self) -> int:
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise IndexError
        self.at += length
        return self.data[self.at - length : self.at]

    def count(self) -> int:
        """The length of a list; the type of its elements is known to who asks."""
        return self._head()[0]

    def _head(self) -> tuple[int, int]:
        head = self.byte()
        return (self.number() if head >> 4 == 15 else head >> 4), head & 15

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field; whoever takes one reads its value."""
        number = 0
        while kind := (head := self.byte()) & 15:
            number = number + (head >> 4) if head >> 4 else self.signed()
            yield number, kind

    def struct(self) -> Iterator[tuple[int, Any]]:
        for number, kind in self.fields():
            yield number, self.value(kind)

    def value(self, kind: int) -> Any:
        """A value, in the forms that a schema has; of others only the end is found."""
        if kind in (1, 2):
            return kind == 1
        if kind == BINARY:
            return self.take(self.number())
        if kind in (BYTE, DOUBLE):
            return self.take(1 if kind == BYTE else 8)
        if kind == STRUCT:
            return dict(self.struct())
        if kind in (LIST, SET):
            length, inner = self._head()
            return self.take(length) if inner in (1, 2) else [self.value(inner) for _ in range(length)]
        if kind == MAP:
            raise TypeError  # no footer has one before or in its schema
        return self.signed()
