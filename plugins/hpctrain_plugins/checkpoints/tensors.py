"""Logical tensors: a name, a type, a shape and the bytes of files that they are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, Union

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import bands as b
from hpctrain_plugins.checkpoints.bands import Checksum

ITEMSIZE = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "F8_E4M3FNUZ": 1,
    "F8_E5M2FNUZ": 1,
    "U16": 2,
    "U32": 4,
    "U64": 8,
    "C64": 8,
}
"""Bytes per element by the names that safetensors uses."""

PACKED_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
"""Bits per element of types that are smaller than a byte: they are moved as bytes and never taken apart."""

FLOATS = frozenset({"F64", "F32", "F16", "BF16"})


@attrs.frozen
class LowRank:
    """`scale * up @ down` is added to the tensor: a LoRA adapter."""

    up: Tensor
    down: Tensor
    scale: float
    transposed: bool = False


@attrs.frozen
class Plus:
    """Tensors of the same shape are added: biases that ranks hold in parts."""

    addends: tuple[Tensor, ...]


@attrs.frozen
class Origin:
    """A tensor as one file of the source holds it."""

    name: str
    file: Path
    offset: int
    size: int


Addend: TypeAlias = Union[LowRank, Plus]  # noqa: UP007  (mypy reads the forward reference)


@attrs.frozen
class Packed:
    """What a file calls elements that are smaller than a byte."""

    dtype: str
    shape: tuple[int, ...]


@attrs.frozen
class Tensor:
    """What a checkpoint says about one tensor; its bytes are read only when they are copied."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bands: b.Bands
    add: Addend | None = None
    origins: tuple[Origin, ...] = attrs.field(default=(), eq=False, repr=False)
    """What it was made from; a slice still names all, `origins.trace` finds those it holds bytes of."""
    reordered: bool = attrs.field(default=False, eq=False, repr=False)
    """Rows stand in another order than in the source."""
    packed: Packed | None = None
    """Set where `dtype` and `shape` are of the bytes alone."""

    @property
    def itemsize(self) -> int:
        """How many bytes one element takes."""
        return ITEMSIZE[self.dtype]

    @property
    def numel(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes all elements take."""
        return self.numel * self.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes of one step along the first axis."""
        return self.itemsize * math.prod(self.shape[1:])

    def named(self, name: str) -> Tensor:
        """This tensor under another name."""
        return attrs.evolve(self, name=name)

    def shaped(self, *shape: int) -> Tensor:
        """This tensor's bytes with another shape."""
        if math.prod(shape) != self.numel:
            message = f"{self.name} has shape {list(self.shape)} where {list(shape)} was expected"
            raise IntegrityError.of("checkpoint-shape", message, where=self.name)
        return attrs.evolve(self, shape=shape)

    def part(self, axis: int, start: int, stop: int) -> Tensor:
        """The slice `start` to `stop` along `axis`."""
        self._bare()
        shape = (*self.shape[:axis], stop - start, *self.shape[axis + 1 :])
        step = self.itemsize * math.prod(self.shape[axis + 1 :])
        if axis == 0:
            return attrs.evolve(self, shape=shape, bands=b.cut(self.bands, start * step, stop * step))
        cropped = b.crop(self.bands, self.shape[axis] * step, start * step, stop * step)
        return attrs.evolve(self, shape=shape, bands=cropped)

    def chunk(self, axis: int, parts: int) -> list[Tensor]:
        """Equal slices along `axis`; refuses a length that does not divide."""
        length = self.shape[axis]
        if length % parts:
            message = f"axis {axis} of {self.name} has length {length}, not divisible by {parts}"
            raise IntegrityError.of("checkpoint-shape", message, where=self.name)
        step = length // parts
        return [self.part(axis, i * step, (i + 1) * step) for i in range(parts)]

    def every(self, start: int, step: int) -> Tensor:
        """Each `step`-th row from `start` on."""
        self._bare()
        shape = (self.shape[0] // step, *self.shape[1:])
        return attrs.evolve(self, shape=shape, bands=b.every(self.bands, self.row_bytes, start, step))

    def _bare(self) -> None:
        if self.packed is not None:
            message = f"{self.name} is of type {self.packed.dtype}, which cannot be joined or split"
            raise ConfigError.of("checkpoint-unsupported", message, where=self.name)
        if self.add is not None:
            kind = "a sum over ranks" if isinstance(self.add, Plus) else "a base and its adapter together"
            message = f"{self.name} is {kind}, which cannot be joined or split: convert to hf first"
            raise ConfigError.of("checkpoint-unsupported", message, where=self.name)


def whole(name: str, dtype: str, shape: Sequence[int], file: Path, offset: int) -> Tensor:
    """A tensor that lies in one piece in `file`."""
    size = ITEMSIZE[dtype] * math.prod(shape)
    origin = Origin(name, file, offset, size)
    return Tensor(name, dtype, tuple(shape), b.flat(file, offset, size), origins=(origin,))


def zeros(name: str, dtype: str, shape: Sequence[int]) -> Tensor:
    """A tensor that no file holds."""
    return Tensor(name, dtype, tuple(shape), b.flat(None, 0, ITEMSIZE[dtype] * math.prod(shape)))


def concat(parts: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along `axis`; the others must agree."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for piece in parts[1:]:
        shapes_agree = _without(first.shape, axis) == _without(piece.shape, axis)
        if first.dtype != piece.dtype or not shapes_agree:
            message = (
                f"parts of {first.name} differ: {first.dtype} {list(first.shape)} "
                f"and {piece.dtype} {list(piece.shape)}"
            )
            raise IntegrityError.of("checkpoint-shape", message, where=first.name)
        piece._bare()
    first._bare()
    length = sum(p.shape[axis] for p in parts)
    shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
    if axis == 0:
        bands = b.join(p.bands for p in parts)
    else:
        step = first.itemsize * math.prod(first.shape[axis + 1 :])
        bands = b.weave([(p.bands, p.shape[axis] * step) for p in parts])
    origins = tuple(dict.fromkeys(origin for part in parts for origin in part.origins))
    turned = any(part.reordered for part in parts)
    return attrs.evolve(first, shape=shape, bands=bands, origins=origins, reordered=turned)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@attrs.define
class Model:
    """A whole checkpoint in the words of Hugging Face: what every reader gives and writer takes.

    `replicas` are tensors that must be equal bit by bit; `ignored` says why something was left out;
    `tied` maps an alias to the tensor that holds its bytes.
    """

    tensors: dict[str, Tensor]
    config: dict[str, Any] = attrs.field(factory=dict)
    files: dict[str, Path] = attrs.field(factory=dict)
    replicas: list[tuple[Tensor, Tensor]] = attrs.field(factory=list)
    ignored: dict[str, str] = attrs.field(factory=dict)
    decisions: dict[str, Any] = attrs.field(factory=dict)
    crcs: dict[Path, list[Checksum]] = attrs.field(factory=dict)
    """Ranges whose checksums their writer noted."""
    tied: dict[str, str] = attrs.field(factory=dict)
    step: int | None = None
    warnings: list[str] = attrs.field(factory=list)
    shapes: str = "unproven"
    """What says every tensor's shape beside the file that holds it."""

    @property
    def parameters(self) -> int:
        """How many weights the model has, each counted once."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())
