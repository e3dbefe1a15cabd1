from __future__ import annotations

import math
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hpctrain_plugins.checkpoints import bands as b
from hpctrain_plugins.checkpoints.copying.crc import checksum, combine
from hpctrain_plugins.checkpoints.tensors import Tensor, concat, whole

FILE = Path("one")


def read(bands: b.Bands, data: bytes) -> bytes:
    out = b""
    for band in bands:
        for row in range(band.count):
            for s in band.strips:
                at = s.offset + row * s.stride
                out += data[at : at + s.width] if s.file else bytes(s.width)
    return out


def array(tensor: Tensor, data: bytes) -> np.ndarray:
    return np.frombuffer(read(tensor.bands, data), np.int32).reshape(tensor.shape)


@pytest.mark.parametrize("seed", range(30))
def test_slices_concats_and_permutations_equal_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, 4, size=random.integers(1, 4)) * 4)
    want = random.integers(0, 2**31, size=shape).astype(np.int32)
    data = want.tobytes()
    have = whole("t", "I32", shape, FILE, 0)
    for _ in range(12):
        axis = int(random.integers(0, want.ndim))
        length = want.shape[axis]
        cuts = sorted({0, length, *(int(c) for c in random.integers(0, length + 1, size=3))})
        spans = list(pairwise(cuts))
        random.shuffle(spans)
        take = spans[: max(1, int(random.integers(1, len(spans) + 1)))]
        index = [slice(None)] * want.ndim
        parts = []
        for low, high in take:
            index[axis] = slice(low, high)
            parts.append(want[tuple(index)])
        want = np.concatenate(parts, axis)
        have = concat([have.part(axis, low, high) for low, high in take], axis)
        if want.shape[0] % 2 == 0 and random.random() < 0.5:
            want = np.concatenate([want[0::2], want[1::2]])
            have = concat([have.every(0, 2), have.every(1, 2)])
        assert have.shape == want.shape
        assert (array(have, data) == want).all()
        assert b.size_of(have.bands) == want.nbytes


@pytest.mark.parametrize("size", [1, 3, 8, 64, 1000])
def test_split_gives_the_bytes_in_pieces_of_one_size(size: int) -> None:
    data = np.arange(256, dtype=np.uint8).tobytes()
    left = whole("t", "U8", (16, 16), FILE, 0).part(1, 0, 5)
    woven = concat([left, whole("t", "U8", (16, 16), FILE, 0).part(1, 9, 16)], 1)
    pieces = list(b.split(woven.bands, size))
    assert b"".join(read(p, data) for p in pieces) == read(woven.bands, data)
    assert all(b.size_of(p) == size for p in pieces[:-1])


def test_neighbours_merge_into_one_range() -> None:
    tensor = whole("t", "F32", (8, 8), FILE, 100)
    again = concat(tensor.chunk(0, 4))
    assert again.bands == tensor.bands
    assert concat(tensor.chunk(1, 2), 1).bands[0].count == 8


def test_a_length_that_does_not_divide_is_refused() -> None:
    with pytest.raises(Exception, match="axis 0 of t has length 8, not divisible by 3"):
        whole("t", "F32", (8, 8), FILE, 0).chunk(0, 3)


@pytest.mark.parametrize("at", [0, 1, 7, 1000, 9999])
def test_checksums_of_pieces_combine(at: int) -> None:
    data = np.random.default_rng(1).bytes(10_000)
    assert combine(zlib.crc32(data[:at]), zlib.crc32(data[at:]), len(data) - at) == zlib.crc32(data)


@pytest.mark.parametrize("size", [0, 5, 458_194, 458_195, 600_001, 2 << 20, 5_000_003])
def test_checksums_are_those_of_zlib(size: int) -> None:
    data = memoryview(np.random.default_rng(size).bytes(size))
    assert checksum(data) == zlib.crc32(data)


def test_numel_of_a_scalar_is_one() -> None:
    assert whole("t", "F32", (), FILE, 0).numel == math.prod(())
