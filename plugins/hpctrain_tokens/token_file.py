"""Token files opened for looking, whoever's form they have."""

from __future__ import annotations

import mmap
from array import array
from pathlib import Path

from hpctrain_tokens import widths
from hpctrain_tokens.safely import blocks


class TokenFile:
    """Sequences of tokens: where the file is, how wide its numbers are, where each sequence begins in bytes,
    and how many numbers it has."""

    def __init__(self, path: Path, code: str, sizes: array[int], offsets: array[int]) -> None:
        self.path, self.code, self.sizes, self.offsets = path, code, sizes, offsets

    @property
    def documents(self) -> int:
        return len(self.sizes)

    @property
    def tokens(self) -> int:
        return sum(self.sizes)

    def largest(self) -> int:
        """The largest token of the file, or -1 without any."""
        parts = (widths.read(self.code, block) for block in blocks(self.path))
        return max((max(part) for part in parts), default=-1)

    def sequence(self, number: int, most: int | None = None) -> list[int]:
        """The tokens of one sequence, or the first `most` of them."""
        count = self.sizes[number] if most is None else min(most, self.sizes[number])
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return list(part(mapped, self.code, self.offsets[number], count))


def part(data: bytes | mmap.mmap, code: str, at: int, count: int) -> array[int]:
    """`count` numbers of `data`, from the byte `at` on."""
    return widths.read(code, data[at : at + count * widths.size(code)])
