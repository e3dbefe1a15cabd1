"""Memory in which bytes lie as they do in the pages of a file, so that a disk can take or give them there."""

from __future__ import annotations

import mmap

import numpy as np

PAGE = mmap.PAGESIZE

WORTH = 1 << 17
"""Fewer bytes are not worth waiting for a disk."""


def buffer(size: int) -> memoryview:
    """Room for `size` bytes from any byte of the first page on; memory is taken where it is touched."""
    return memoryview(mmap.mmap(-1, size + PAGE))


def room_in(scratch: memoryview, size: int, at: int = 0) -> memoryview:
    """`size` bytes of a buffer, or of a new one for a row that is longer, as from byte `at` of a file."""
    start = at % PAGE
    room = scratch if start + size <= len(scratch) else buffer(size)
    return room[start : start + size]


def whole_pages(data: memoryview, at: int) -> tuple[int, int]:
    """From where to where `data`, which belongs at byte `at` of a file, is pages of it in memory too."""
    first, last = -at % PAGE, len(data) - (at + len(data)) % PAGE
    if last - first < WORTH:
        return 0, 0
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return (0, 0) if (address - at) % PAGE else (first, last)
