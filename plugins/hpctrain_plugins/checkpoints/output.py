"""What a conversion will write, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import attrs

from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, Tensor

Seal: TypeAlias = Callable[[list[int]], Iterable[tuple[int, bytes]]]
"""The checksums of the parts in order -> bytes that depend on them, with their offsets."""


@attrs.frozen
class Part:
    """One tensor at one place of one file."""

    offset: int
    tensor: Tensor
    dtype: str

    @property
    def size(self) -> int:
        """How many bytes the tensor takes in the new file."""
        return self.tensor.numel * ITEMSIZE[self.dtype]


@attrs.frozen
class OutFile:
    """A file with tensors in it: fixed text, parts, and what is known only after copying."""

    name: str
    size: int
    parts: tuple[Part, ...]
    texts: tuple[tuple[int, bytes], ...] = ()
    seal: Seal | None = None


@attrs.define
class Output:
    """Everything a writer makes, by names relative to the output folder."""

    files: list[OutFile] = attrs.field(factory=list)
    texts: dict[str, bytes] = attrs.field(factory=dict)
    copies: dict[str, Path] = attrs.field(factory=dict)
    decisions: dict[str, object] = attrs.field(factory=dict)

    @property
    def size(self) -> int:
        """How many bytes all tensors of the file take."""
        return sum(f.size for f in self.files)
