"""The `.idx` of GPT-NeoX and Megatron, written in a constant amount of memory.

Both trainers read the same bytes: magic, version, type, two counts, then the sizes of sequences, where
each begins in the `.bin`, and with which sequence each document ends. A document without tokens is an
entry of the last table that repeats the one before; GPT-NeoX never writes one.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path

from hpctrain_tokens import widths
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.safely import Sink
from hpctrain_tokens.token_file import TokenFile, part

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


class Indexed(TokenFile):
    """A `.bin` and its `.idx`; every number is checked against the others."""

    def __init__(self, prefix: Path) -> None:
        tokens, self.idx = (prefix.with_name(prefix.name + end) for end in (".bin", ".idx"))
        if not tokens.is_file():
            raise DataError.of("data-index", f"{self.idx.name} has no .bin beside it", file=str(tokens))
        index = self.idx.read_bytes()
        try:
            magic, version, number, sequences, ends = HEADER.unpack_from(index)
        except struct.error:
            raise self._wrong("the index is shorter than its header") from None
        code = {n: c for c, n in widths.CODES.items()}.get(number, "")
        if magic != MAGIC or version != VERSION or not code:
            raise self._wrong("this is not a token index, version 1")
        if len(index) != HEADER.size + 12 * sequences + 8 * ends or not ends:
            raise self._wrong("the index does not have the size it announces")
        at = HEADER.size
        offsets = part(index, "q", at + 4 * sequences, sequences)
        super().__init__(tokens, code, part(index, "i", at, sequences), offsets)
        self.ends = part(index, "q", at + 12 * sequences, ends)
        self._check()

    def _wrong(self, message: str) -> DataError:
        return DataError.of("data-index", message, file=str(self.idx))

    def _check(self) -> None:
        file_size, announced = self.path.stat().st_size, self.tokens * widths.size(self.code)
        if announced != file_size:
            message = f"the index announces {announced} bytes of tokens, the .bin has {file_size}"
            raise DataError.of("data-index", message, file=str(self.path))
        if self.ends[0] != 0 or self.ends[-1] != len(self.sizes):
            raise self._wrong("documents do not end with the last sequence")

    @property
    def documents(self) -> int:
        return len(self.ends) - 1
