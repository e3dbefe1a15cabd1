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
    """Query, key and value of one rank's fused tensor.

    In the layout `concat` they stand one after the other, `per-head` for each query head, `grouped` for each
    key head with its query heads.
    """
    inner_shape, cols = fused.shape[1:], math.prod(fused.shape[1:])
    if layout == "concat":
        ends = [heads.query, heads.query + heads.key_value, heads.query + 2 * heads.key_value]
        fused.shaped(ends[2] * heads.size, *inner_shape)
        starts = [0, *ends[:2]]
        pairs = zip(starts, ends, strict=True)
        return [fused.part(0, a * heads.size, b * heads.size) for a, b in pairs]
    rows = _rows(heads, layout)
    widths = _beside(heads, rows, cols)
    grid = fused.shaped(rows, sum(widths))
    out, at = [], 0
    for width in widths:
        piece = grid.part(1, at, at + width).shaped(rows * width // max(1, cols), *inner_shape)
        out.append(attrs.evolve(piece, reordered=True))
        at += width
    return out


def fuse_qkv(parts: Sequence[Tensor], heads: Heads, layout: str) -> Tensor:
    """The inverse of `split_qkv`."""
    inner_shape, cols = parts[0].shape[1:], math.prod(parts[0].shape[1:])
    rows = (heads.query + 2 * heads.key_value) * heads.size
    if layout == "concat":
        return concat(parts).shaped(rows, *inner_shape)
    across = _rows(heads, layout)
    widths = _beside(heads, across, cols)
    grids = [p.shaped(across, w) for p, w in zip(parts, widths, strict=True)]
    return attrs.evolve(concat(grids, 1).shaped(rows, *inner_shape), reordered=True)


def _rows(heads: Heads, layout: str) -> int:
    """Next to each of what query, key and value stand: a query head, or a group of them with its key head."""
    return heads.query if layout == "per-head" else heads.key_value


def _beside(heads: Heads, rows: int, cols: int) -> list[int]:
    """Elements of query, key and value that stand together in one of `rows`."""
    query, key = (heads.size * count // rows * cols for count in (heads.query, heads.key_value))
    return [query, key, key]


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
