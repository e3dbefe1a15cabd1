"""Products with weights that stay in their files: a few rows at a time, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from hpctrain_plugins.checkpoints import bands as b
from hpctrain_plugins.checkpoints.copying.casts import Array, as_array, store, to_float32
from hpctrain_plugins.checkpoints.copying.compute import Factors, target_dtype
from hpctrain_plugins.checkpoints.copying.reading import CHUNK, Ledger, Reader
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, LowRank, Plus, Tensor


class Weights:
    """Reads weights as they are, or rounded to the type in which they are written."""

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self._reader = Reader(Ledger({}))
        self._factors = Factors()

    def close(self) -> None:
        """Close every file."""
        self._reader.close()

    def linear(self, x: Array, weight: Tensor, bias: Tensor | None = None) -> Array:
        """`x @ weight.T + bias`; an adapter is applied beside its weight, as it was trained."""
        out, at = np.empty((len(x), weight.shape[0])), 0
        for block in self._blocks(weight):
            rows = block.reshape(-1, weight.shape[1])
            out[:, at : at + len(rows)] = x @ rows.T
            at += len(rows)
        if isinstance(weight.add, LowRank):
            up, down = self._factors.of(weight.name, weight.add, self._reader)
            out += weight.add.scale * (x @ down.T.astype(np.float64)) @ up.T.astype(np.float64)
        return out if bias is None else out + self.vector(bias)

    def vector(self, tensor: Tensor) -> Array:
        """A small tensor; ranks' parts of a bias are added up."""
        parts = [tensor, *(tensor.add.addends if isinstance(tensor.add, Plus) else ())]
        return np.asarray(np.sum([np.concatenate(list(self._blocks(part))) for part in parts], axis=0))

    def rows(self, table: Tensor, numbers: Sequence[int]) -> Array:
        """Rows of an embedding, those of the given tokens alone."""
        bare = attrs.evolve(table, add=None)
        out = np.stack([self.vector(bare.part(0, n, n + 1)) for n in numbers])
        if isinstance(table.add, LowRank):
            up, down = self._factors.of(table.name, table.add, self._reader)
            out += table.add.scale * up[list(numbers)].astype(np.float64) @ down.astype(np.float64)
        return out

    def _blocks(self, tensor: Tensor) -> Iterator[Array]:
        """The numbers in whole rows, as many as a buffer holds."""
        size = max(1, CHUNK // max(1, tensor.row_bytes)) * tensor.row_bytes
        buffer = memoryview(bytearray(min(size, tensor.nbytes)))
        for piece in b.split(tensor.bands, size):
            data = buffer[: b.size_of(piece)]
            self._reader.fill(piece, data)
            yield self._numbers(data, tensor)

    def _numbers(self, data: memoryview, tensor: Tensor) -> Array:
        dtype = target_dtype(tensor, self._dtype)
        have = as_array(data, tensor.dtype)
        if dtype != tensor.dtype and ITEMSIZE[dtype] <= ITEMSIZE[tensor.dtype]:
            rounded = as_array(memoryview(bytearray(have.size * ITEMSIZE[dtype])), dtype)
            store(to_float32(have, tensor.dtype), dtype, rounded, tensor.name)
            return to_float32(rounded, dtype).astype(np.float64)
        if tensor.dtype == "F64":
            return have.astype(np.float64)
        return to_float32(have, tensor.dtype).astype(np.float64)
