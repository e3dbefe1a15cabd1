"""CRC32 at the speed of memory, and of pieces read in any order, put together without reading them again."""

from __future__ import annotations

import threading
import zlib
from functools import lru_cache

import numpy as np

_POLY = 0xEDB88320

_FAR, _NEAR = 91639, 49961
"""The polynomial divides x^91639 + x^(91639 - 49961) + 1, and so the same trinomial of bytes."""

_ROOM = 6 * _NEAR
"""Sums that are kept before the last ones move to the front: few enough for the second-level cache."""

_SHORT = 4 * _FAR
_own = threading.local()


def checksum(data: memoryview) -> int:
    """CRC32 of `data`.

    Bytes are folded onto later ones by that trinomial, two exclusive ors of long vectors, until so
    few are left that zlib, whose speed differs tenfold between machines, hardly counts.
    """
    end = len(data) - _FAR
    if end < _SHORT:
        return zlib.crc32(data)
    given, sums = np.frombuffer(data, np.uint8), _sums()
    sums[:_FAR] = 0
    sums[:4] = 0xFF  # what the register starts with
    here = _FAR
    for at in range(0, end, _NEAR):
        size = min(_NEAR, end - at)
        if here + size > len(sums):
            sums[:_FAR] = sums[here - _FAR : here]
            here = _FAR
        new = sums[here : here + size]
        np.bitwise_xor(given[at : at + size], sums[here - _NEAR : here - _NEAR + size], out=new)
        new ^= sums[here - _FAR : here - _FAR + size]
        here += size
    left = given[end:] ^ sums[here - _FAR : here]
    left[:_NEAR] ^= sums[here - _NEAR : here]
    return zlib.crc32(left.data, 0xFFFFFFFF)


def _sums() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Room for the latest sums, the same for every call of a thread."""
    held: np.ndarray[tuple[int], np.dtype[np.uint8]] | None = getattr(_own, "sums", None)
    if held is None:
        held = _own.sums = np.empty(_FAR + _ROOM, np.uint8)
    return held


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
    return _multiply(_shift(size), first) ^ second
