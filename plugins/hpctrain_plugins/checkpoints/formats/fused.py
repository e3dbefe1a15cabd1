"""Rows that trainers keep together: query, key and value; gate and up; rotary pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.tensors import Tensor, concat


@attrs.frozen
class Heads:
    """How attention is divided."""

    query: int
    key_value: int
    size: int

    def over(self, ranks: int) -> Heads:
        """What one of `ranks` holds."""
        if self.query % ranks or self.key_value % ranks:
            message = f"{self.query} heads and {self.key_value} key heads do not divide by tp {ranks}"
            raise ConfigError.of("checkpoint-ranks", message, where="tp")
        return Heads(self.query // ranks, self.key_value // ranks, self.size)

    @property
    def grouped(self) -> bool:
        """Several query heads share a key head."""
        return self.query != self.key_value


def split_qkv(fused: Tensor, heads: Heads, layout: str) -> list[Tensor]:
    """Query, key and value of one rank's fused tensor."""
    inner_shape, cols = fused.shape[1:], math.prod(fused.shape[1:])
    if layout == "concat":
        ends = [heads.query, heads.query + heads.key_value, heads.query + 2 * heads.key_value]
        fused.shaped(ends[2] * heads.size, *inner_shape)
        starts = [0, *ends[:2]]
        pairs = zip(starts, ends, strict=True)
        return [fused.part(0, a * heads.size, b * heads.size) for a, b in pairs]
    widths = _per_head(heads, cols)
    grid = fused.shaped(heads.query, sum(widths))
    out, at = [], 0
    for width in widths:
        piece = grid.part(1, at, at + width).shaped(heads.query * width // max(1, cols), *inner_shape)
        out.append(attrs.evolve(piece, reordered=True))
        at += width
    return out


def fuse_qkv(parts: Sequence[Tensor], heads: Heads, layout: str) -> Tensor:
    """The inverse of `split_qkv`."""
    inner_shape, cols = parts[0].shape[1:], math.prod(parts[0].shape[1:])
    rows = (heads.query + 2 * heads.key_value) * heads.size
    if layout == "concat":
        return concat(parts).shaped(rows, *inner_shape)
    widths = _per_head(heads, cols)
    grids = [p.shaped(heads.query, w) for p, w in zip(parts, widths, strict=True)]
    return attrs.evolve(concat(grids, 1).shaped(rows, *inner_shape), reordered=True)


def _per_head(heads: Heads, cols: int) -> list[int]:
    """Elements of query, key and value that go with one query head."""
    share = heads.size * heads.key_value // heads.query
    return [heads.size * cols, share * cols, share * cols]


def pairs_to_halves(tensor: Tensor, heads: int) -> Tensor:
    """Rotary rows from (even, odd) pairs to two halves, per head: what Hugging Face uses."""
    size, cols = tensor.shape[0] // heads, math.prod(tensor.shape[1:])
    grid = tensor.shaped(heads, size // 2, 2, cols)
    halves = [grid.part(2, i, i + 1) for i in (0, 1)]
    return attrs.evolve(concat(halves, 1).shaped(*tensor.shape), reordered=True)


def halves_to_pairs(tensor: Tensor, heads: int) -> Tensor:
    """The inverse of `pairs_to_halves`."""
    size, cols = tensor.shape[0] // heads, math.prod(tensor.shape[1:])
    grid = tensor.shaped(heads, 2, size // 2, cols)
    halves = [grid.part(1, i, i + 1).shaped(heads, size // 2, 1, cols) for i in (0, 1)]
    return attrs.evolve(concat(halves, 2).shaped(*tensor.shape), reordered=True)
