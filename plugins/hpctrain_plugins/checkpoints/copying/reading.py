"""Bytes from files into buffers; every range that is read is also checked."""

from __future__ import annotations

import os
import threading
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from functools import reduce
from itertools import accumulate
from pathlib import Path

import numpy as np

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.bands import Band, Bands, Checksum, Strip
from hpctrain_plugins.checkpoints.copying.buffers import buffer, room_in
from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.copying.crc import checksum, combine
from hpctrain_plugins.checkpoints.copying.disks import Disk
from hpctrain_plugins.checkpoints.copying.files import OpenFiles

CHUNK = 2 << 20
"""Bytes of the source per step, and at most of what is made of them; a thread holds four times that, and five
times to compare.

Half of it fits smaller caches, and costs more all the same: threads hand files and Python over to each other
at every step, and the columns of each rank get so short that their checksums take longer."""

_WIDE = 1 << 14
"""A row that is worth a read of its own when what lies between is not wanted."""


class Ledger:
    """What was read of files with known checksums, and whether it agrees with them."""

    def __init__(self, checksums: dict[Path, list[Checksum]]) -> None:
        self._checksums = checksums
        self._ranges: dict[Path, dict[tuple[int, int], int]] = defaultdict(dict)
        self._lock = threading.Lock()

    def watches(self, path: Path) -> bool:
        """Whether anything in the file has a checksum."""
        return path in self._checksums

    def note(self, path: Path, offset: int, size: int, crc: int) -> None:
        """Remember the checksum of a range that was read."""
        with self._lock:
            self._ranges[path][offset, size] = crc

    def check(self) -> int:
        """Compare every range that was touched; returns the bytes that were checked."""
        total = 0
        for path, crc_by_range in sorted(self._ranges.items()):
            ranges = sorted((offset, size, crc) for (offset, size), crc in crc_by_range.items())
            for run in _runs(self._checksums[path], ranges):
                first = bisect_left(ranges, (run[0].offset,))
                parts = ranges[first : bisect_left(ranges, (run[-1].offset + run[-1].size,))]
                if not parts:
                    continue
                if _tiled(parts, run) != reduce(lambda crc, e: combine(crc, e.crc, e.size), run, 0):
                    _one_by_one(path, run)
                total += sum(entry.size for entry in run)
        return total


def _runs(checksums: list[Checksum], ranges: list[tuple[int, int, int]]) -> Iterator[list[Checksum]]:
    """Entries apart, or together where something was read across their border."""
    ends = list(accumulate((offset + size for offset, size, _ in ranges), max))
    run: list[Checksum] = []
    for entry in sorted(checksums, key=lambda entry: entry.offset):
        before = bisect_left(ranges, (entry.offset,))
        if run and not (before and ends[before - 1] > entry.offset):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _tiled(parts: list[tuple[int, int, int]], run: list[Checksum]) -> int | None:
    """The checksum of the whole run, when the parts cover it without overlap."""
    at, crc = run[0].offset, 0
    for offset, size, part in parts:
        if offset != at:
            return None
        at, crc = at + size, combine(crc, part, size)
    return crc if at == run[0].offset + sum(entry.size for entry in run) else None


def _one_by_one(path: Path, run: list[Checksum]) -> None:
    """Read each entry again, and refuse the first that is not what was noted."""
    for entry in run:
        if _reread(path, entry) != entry.crc:
            raise IntegrityError.of(
                "checkpoint-damaged",
                f"{entry.name} in {path} does not match {entry.noted}",
                where=str(path),
                hint="copy the file again from where it was written",
            )


def _reread(path: Path, entry: Checksum) -> int:
    crc, left = 0, entry.size
    with path.open("rb") as file:
        file.seek(entry.offset)
        while left:
            block = file.read(min(left, CHUNK))
            if not block:
                break
            crc, left = zlib.crc32(block, crc), left - len(block)
    return crc


def _read(fd: int, into: memoryview, offset: int) -> int:
    return os.preadv(fd, [into], offset)


class Reader:
    """Reads bytes of files into buffers, for one thread."""

    def __init__(self, ledger: Ledger, on_disk: frozenset[Path] = frozenset()) -> None:
        """The files `on_disk` are read from the disk itself, whatever the page cache holds of them."""
        self._files = OpenFiles(os.O_RDONLY)
        self._disk = Disk(os.O_RDONLY, _read)
        self._on_disk = on_disk
        self._ledger = ledger
        self.scratch = buffer(CHUNK)
        """Room that anybody may use until something is read again."""

    def close(self) -> None:
        """Close every file."""
        self._files.close()
        self._disk.close()

    def fill(self, bands: Bands, into: memoryview) -> int | None:
        """Put the bytes of `bands` into `into`; the CRC32, when reading gave it for nothing."""
        at = 0
        crc = None
        for band in bands:
            section = into[at : at + band.size]
            if band.count == 1:
                for strip in band.strips:
                    piece = into[at : at + strip.width]
                    crc = self._piece(strip.file, strip.offset, piece)
                    at += strip.width
            else:
                self._rows(band, section)
                at += band.size
        only = len(bands) == 1 and bands[0].flat
        return crc if only else None

    def _piece(self, path: Path | None, offset: int, into: memoryview) -> int | None:
        if path is None:
            into[:] = bytes(len(into))
            return None
        first, last = 0, 0
        if path in self._on_disk:
            first, last = self._disk.move(path, offset, into)
        self._cached(path, offset, into[:first])
        self._cached(path, offset + last, into[last:])
        if not self._ledger.watches(path):
            return None
        crc = checksum(into)
        self._ledger.note(path, offset, len(into), crc)
        return crc

    def _cached(self, path: Path, offset: int, into: memoryview) -> None:
        done = 0
        while done < len(into):
            n = _read(self._files[path], into[done:], offset + done)
            if n == 0:
                message = f"{path} ends at byte {offset + done}, {len(into) - done} bytes too early"
                raise IntegrityError.of("checkpoint-damaged", message, where=str(path))
            done += n

    def _rows(self, band: Band, into: memoryview) -> None:
        target = np.frombuffer(into, np.uint8).reshape(band.count, band.width)
        left = 0
        for strip in band.strips:
            columns = target[:, left : left + strip.width]
            left += strip.width
            if strip.file is None:
                columns[...] = 0
                continue
            rows = _rows_at_once(strip)
            for row in range(0, band.count, rows):
                self._columns(strip.at(row), columns[row : row + rows])

    def _columns(self, strip: Strip, into: Array) -> None:
        """Rows that lie apart: one read over all of them, then a copy of the columns."""
        rows = into.shape[0]
        span = room_in(self.scratch, (rows - 1) * strip.stride + strip.width, strip.offset)
        self._piece(strip.file, strip.offset, span)
        shape, steps = (rows, strip.width), (strip.stride, 1)
        grid = np.frombuffer(span, np.uint8)
        into[...] = np.lib.stride_tricks.as_strided(grid, shape, steps)


def _rows_at_once(strip: Strip) -> int:
    """Rows per read; wide rows with wide gaps are read one by one."""
    if strip.width >= _WIDE and strip.stride > 2 * strip.width:
        return 1
    return max(1, (CHUNK - strip.width) // strip.stride + 1)
