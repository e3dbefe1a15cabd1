"""The `.idx` of GPT-NeoX and Megatron, written in a constant amount of memory.

Both trainers read the same bytes: magic, version, type, two counts, then the sizes of sequences, where
each begins in the `.bin`, and with which sequence each document ends. A document without tokens is an
entry of the last table that repeats the one before; GPT-NeoX never writes one.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path

from hpctrain_tokens import widths
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.safely import Sink, blocks

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
CHUNK = 1 << 16

Lengths = Callable[[], Iterator[int]]
"""The tokens of each document, in order; called once for every table."""


def write_index(file: Sink, lengths: Lengths, code: str) -> None:
    """Write the whole index of documents with these lengths, whose tokens have type `code`."""
    documents = sum(1 for _ in lengths())
    sequences = sum(map(bool, lengths()))
    width = widths.size(code)
    file.write(HEADER.pack(MAGIC, VERSION, widths.CODES[code], sequences, documents + 1))
    table(file, "i", filter(None, lengths()))
    offsets = accumulate(map(width.__mul__, filter(None, lengths())), initial=0)
    table(file, "q", islice(offsets, sequences))
    table(file, "q", accumulate(map(bool, lengths()), initial=0))


def table(file: Sink, code: str, values: Iterator[int]) -> None:
    """Write numbers, some at a time."""
    while part := array(code, islice(values, CHUNK)):
        file.write(widths.little(part))


class Indexed:
    """A `.bin` and its `.idx`, opened for looking; every number is checked against the others."""

    def __init__(self, prefix: Path) -> None:
        self.bin, self.idx = (prefix.with_name(prefix.name + end) for end in (".bin", ".idx"))
        if not self.bin.is_file():
            raise DataError.of("data-index", f"{self.idx.name} has no .bin beside it", file=str(self.bin))
        index = self.idx.read_bytes()
        try:
            magic, version, number, sequences, ends = HEADER.unpack_from(index)
        except struct.error:
            raise DataError.of(
                "data-index", "the index is shorter than its header", file=str(self.idx)
            ) from None
        self.code = {n: c for c, n in widths.CODES.items()}.get(number, "")
        if magic != MAGIC or version != VERSION or not self.code:
            raise DataError.of("data-index", "this is no index of tokens, version 1", file=str(self.idx))
        if len(index) != HEADER.size + 12 * sequences + 8 * ends or not ends:
            raise DataError.of(
                "data-index", "the index does not have the size it announces", file=str(self.idx)
            )
        at = HEADER.size
        self.sizes = _read(index, "i", at, sequences)
        self.offsets = _read(index, "q", at + 4 * sequences, sequences)
        self.ends = _read(index, "q", at + 12 * sequences, ends)
        self._check()

    def _check(self) -> None:
        held, width = self.bin.stat().st_size, widths.size(self.code)
        if sum(self.sizes) * width != held:
            announced = sum(self.sizes) * width
            said = f"the index announces {announced} bytes of tokens, the .bin has {held}"
            raise DataError.of("data-index", said, file=str(self.bin))
        if self.ends[0] != 0 or self.ends[-1] != len(self.sizes):
            raise DataError.of(
                "data-index", "documents do not end with the last sequence", file=str(self.idx)
            )

    @property
    def documents(self) -> int:
        return len(self.ends) - 1

    @property
    def tokens(self) -> int:
        return sum(self.sizes)

    def largest(self) -> int:
        """The largest token of all."""
        parts = (widths.read(self.code, block) for block in blocks(self.bin))
        return max((max(part) for part in parts), default=-1)

    def sequence(self, number: int, most: int | None = None) -> list[int]:
        """The tokens of one sequence, or the first `most` of them."""
        count = self.sizes[number] if most is None else min(most, self.sizes[number])
        with self.bin.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            return list(_read(held, self.code, self.offsets[number], count))


def _read(data: bytes | mmap.mmap, code: str, at: int, count: int) -> array[int]:
    return widths.read(code, data[at : at + count * widths.size(code)])
