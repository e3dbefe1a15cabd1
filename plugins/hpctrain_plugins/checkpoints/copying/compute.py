"""The bytes of one chunk of a target tensor: read, added to, cast."""

from __future__ import annotations

import threading
from collections import OrderedDict

import attrs
import numpy as np

from hpctrain_plugins.checkpoints import bands as b
from hpctrain_plugins.checkpoints.copying.buffers import PAGE, buffer, room_in
from hpctrain_plugins.checkpoints.copying.casts import BLOCK, Array, as_array, cast, store, to_float32
from hpctrain_plugins.checkpoints.copying.reading import CHUNK, Reader
from hpctrain_plugins.checkpoints.tensors import FLOATS, ITEMSIZE, LowRank, Plus, Tensor


@attrs.frozen
class Chunk:
    """Bytes of one tensor from byte `start` on, of its own type."""

    tensor: Tensor
    dtype: str
    start: int
    bands: b.Bands

    @property
    def size(self) -> int:
        """How many bytes of the source the tensor is computed from."""
        return b.size_of(self.bands)

    @property
    def offset(self) -> int:
        """Where its first byte lies in a file."""
        return b.first_of(self.bands)

    @property
    def target_start(self) -> int:
        """Where the chunk begins in the target type."""
        return self.start // self.tensor.itemsize * _size(self.dtype)


def chunks(tensor: Tensor, dtype: str, at: int = 0, *, rows: bool = False) -> list[Chunk]:
    """The tensor, which goes to byte `at` of a file, in pieces that fit the buffers.

    They end with pages of the file; in whole `rows`, as computed ones always are, they cannot.
    """
    size, first = CHUNK * tensor.itemsize // max(tensor.itemsize, _size(dtype)), 0
    if rows or isinstance(tensor.add, LowRank):
        size = max(1, size // tensor.row_bytes) * tensor.row_bytes
    elif tensor.dtype == dtype and tensor.nbytes > size and not at % tensor.itemsize:
        first = size - at % PAGE
    out, start = [], 0
    for piece in b.split(tensor.bands, size, first):
        out.append(Chunk(tensor, dtype, start, piece))
        start += out[-1].size
    return out


def target_dtype(tensor: Tensor, dtype: str) -> str:
    """`dtype` for floating tensors; integers and flags keep their own type."""
    return tensor.dtype if dtype == "keep" or tensor.dtype not in FLOATS else dtype


def _size(dtype: str) -> int:
    return ITEMSIZE[dtype]


def is_equal(left: memoryview, right: memoryview) -> bool:
    """Whether the bytes are equal; two views by themselves are compared number by number, in Python."""
    if len(left) != len(right):
        return False
    whole = len(left) // 8
    for at in range(0, whole, BLOCK):
        a, b = (np.frombuffer(side, np.uint64, min(BLOCK, whole - at), at * 8) for side in (left, right))
        if (a != b).any():
            return False
    return bytes(left[whole * 8 :]) == bytes(right[whole * 8 :])


class Factors:
    """The small matrices of low-rank additions, the last few kept as float32."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, tuple[Array, Array]] = OrderedDict()

    def of(self, name: str, add: LowRank, reader: Reader) -> tuple[Array, Array]:
        """`up` and `down`, oriented so that rows of the product are rows of the tensor."""
        with self._lock:
            if name not in self._cached:
                up, down = (load(t, reader) for t in (add.up, add.down))
                pair = (down.T, up.T) if add.transposed else (up, down)
                self._cached[name] = pair
                if len(self._cached) > 2:
                    self._cached.popitem(last=False)
            return self._cached[name]


def load(tensor: Tensor, reader: Reader) -> Array:
    """A small tensor as float32."""
    data = memoryview(bytearray(tensor.nbytes))
    at = 0
    for piece in b.split(tensor.bands, CHUNK):
        size = b.size_of(piece)
        reader.fill(piece, data[at : at + size])
        at += size
    return to_float32(as_array(data, tensor.dtype), tensor.dtype).reshape(tensor.shape)


class Producer:
    """Makes the target bytes of chunks for one thread, in its own buffers."""

    def __init__(self, reader: Reader, factors: Factors) -> None:
        self._reader = reader
        self._factors = factors
        self._raw = buffer(CHUNK)
        self._out = buffer(CHUNK)

    def produce(self, chunk: Chunk, at: int = 0) -> tuple[memoryview, int | None]:
        """The bytes for byte `at` of a file, valid until the next call, and their CRC32 if it is known."""
        data = room_in(self._raw, chunk.size, at)
        crc = self._reader.fill(chunk.bands, data)
        tensor = chunk.tensor
        if tensor.add is None and tensor.dtype == chunk.dtype:
            return data, crc
        out = room_in(self._out, chunk.size // tensor.itemsize * _size(chunk.dtype), at)
        if tensor.add is not None:
            self._added(chunk, data, out)
        else:
            cast(data, tensor.dtype, chunk.dtype, out, tensor.name)
        return out, None

    def _added(self, chunk: Chunk, data: memoryview, out: memoryview) -> None:
        tensor = chunk.tensor
        have, into = as_array(data, tensor.dtype), as_array(out, chunk.dtype)
        if isinstance(tensor.add, Plus):
            store(
                self._plus(chunk, to_float32(have, tensor.dtype), tensor.add), chunk.dtype, into, tensor.name
            )
        elif isinstance(tensor.add, LowRank):
            self._low_rank(chunk, have, tensor.add, into)

    def _plus(self, chunk: Chunk, values: Array, add: Plus) -> Array:
        total = values
        for addend in add.addends:
            cut = attrs.evolve(
                addend,
                shape=(values.size,),
                bands=b.cut(addend.bands, chunk.start, chunk.start + chunk.size),
            )
            added = load(cut, self._reader)
            total = np.where(added == 0, total, total + added)  # keeps a negative zero as it is
        return total

    def _low_rank(self, chunk: Chunk, have: Array, add: LowRank, into: Array) -> None:
        """A few rows at a time, so that the product is still in the cache when it is rounded."""
        tensor = chunk.tensor
        up, down = self._factors.of(tensor.name, add, self._reader)
        wide = down.shape[1]
        row, few = chunk.start // tensor.row_bytes, max(1, BLOCK // wide)
        for at in range(0, have.size, few * wide):
            part = have[at : at + few * wide]
            first, rows = row + at // wide, part.size // wide
            delta = (up[first : first + rows] @ down).reshape(-1)
            delta *= add.scale
            delta += to_float32(part, tensor.dtype)
            store(delta, chunk.dtype, into[at : at + part.size], tensor.name)
