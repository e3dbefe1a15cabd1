"""CRC32 at the speed of memory, and of pieces read in any order, put together without reading them again."""

from __future__ import annotations

import threading
import zlib
from functools import lru_cache
from typing import TypeAlias

import numpy as np

_POLY = 0xEDB88320

_FAR, _NEAR = 91639, 49961
"""The polynomial divides x^91639 + x^(91639 - 49961) + 1, and so the same trinomial of bytes."""

_BLOCKS = 6
"""Blocks of sums before the last ones move to the front: few enough for the second-level cache."""

_SHORT = 4 * _FAR
_per_thread = threading.local()
_Bytes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"


def checksum(data: memoryview) -> int:
    """CRC32 of `data`.

    Bytes are folded onto later ones by that trinomial, two exclusive ors of long vectors, until so
    few are left that zlib, whose speed differs tenfold between machines, hardly counts.
    """
    end = len(data) - _FAR
    if end < _SHORT:
        return zlib.crc32(data)
    array, sums = np.frombuffer(data, np.uint8), _sums()
    sums.first[:] = 0
    sums.first[:4] = 0xFF  # what the register starts with
    whole = end - end % _NEAR
    number = 0
    for block in array[:whole].reshape(-1, _NEAR):
        near, far, new = sums.windows[number]
        np.bitwise_xor(block, near, new)
        np.bitwise_xor(new, far, new)
        number += 1
        if number == _BLOCKS:
            sums.first[:] = sums.last
            number = 0
    near, far, new = (window[: end - whole] for window in sums.windows[number])
    np.bitwise_xor(array[whole:end], near, new)
    np.bitwise_xor(new, far, new)
    position = number * _NEAR + end - whole
    left = array[end:] ^ sums.all[position : position + _FAR]
    left[:_NEAR] ^= sums.all[position + _FAR - _NEAR : position + _FAR]
    return zlib.crc32(left.data, 0xFFFFFFFF)


class _Sums:
    """Room for the latest sums of one thread, and the windows of it that its blocks are made from and in."""

    def __init__(self) -> None:
        self.all = np.empty(_FAR + _BLOCKS * _NEAR, np.uint8)
        self.first, self.last = self.all[:_FAR], self.all[-_FAR:]
        self.windows = [self._window(_FAR + number * _NEAR) for number in range(_BLOCKS)]

    def _window(self, at: int) -> tuple[_Bytes, _Bytes, _Bytes]:
        near, far, new = (self.all[start : start + _NEAR] for start in (at - _NEAR, at - _FAR, at))
        return near, far, new


def _sums() -> _Sums:
    """The buffers of this thread, made once: to cut them for every call costs a tenth of the sums."""
    sums: _Sums | None = getattr(_per_thread, "sums", None)
    if sums is None:
        sums = _per_thread.sums = _Sums()
    return sums


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials modulo CRC32's own."""
    product = 0
    mask = 1 << 31
    while mask:
        if a & mask:
            product ^= b
        mask >>= 1
        b = (b >> 1) ^ _POLY if b & 1 else b >> 1
    return product


@lru_cache(maxsize=4096)
def _shift(size: int) -> int:
    """The polynomial that appends `size` zero bytes."""
    power, result = 1 << 23, 1 << 31  # x^8 and x^0
    while size:
        if size & 1:
            result = _multiply(power, result)
        power = _multiply(power, power)
        size >>= 1
    return result


def combine(first: int, second: int, size: int) -> int:
    """CRC32 of two pieces together; `size` is that of the second."""
    if not first:
        return second
    return _multiply(_shift(size), first) ^ second
