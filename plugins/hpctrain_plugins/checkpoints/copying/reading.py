"""Bytes from files into buffers; every range that is read is also checked."""

from __future__ import annotations

import os
import threading
import zlib
from collections import defaultdict
from pathlib import Path

import attrs
import numpy as np

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.copying.bands import Band, Bands, Strip
from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.copying.crc import checksum, combine

CHUNK = 2 << 20
"""Bytes of the source per step, and at most of what is made of them; a thread holds four times that.

Half of it fits smaller caches, and costs more all the same: threads hand files and Python over to each other
at every step, and the columns of each rank get so short that their checksums take longer."""

_WIDE = 1 << 14
"""A row that is worth a read of its own when what lies between is not wanted."""

_OPEN_FILES = 32


class OpenFiles:
    """File descriptors of one thread, the least used closed first."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._held: dict[Path, int] = {}

    def __getitem__(self, path: Path) -> int:
        fd = self._held.pop(path, None)
        if fd is None:
            if len(self._held) >= _OPEN_FILES:
                os.close(self._held.pop(next(iter(self._held))))
            fd = os.open(path, self._flags)
        self._held[path] = fd
        return fd

    def close(self) -> None:
        """Close every file."""
        while self._held:
            os.close(self._held.popitem()[1])


@attrs.frozen
class Checksum:
    """A range of a file whose CRC32 its writer noted down."""

    offset: int
    size: int
    crc: int
    name: str


class Ledger:
    """What was read of files with known checksums, and whether it agrees with them."""

    def __init__(self, known: dict[Path, list[Checksum]]) -> None:
        self._known = known
        self._seen: dict[Path, dict[tuple[int, int], int]] = defaultdict(dict)
        self._lock = threading.Lock()

    def watches(self, path: Path) -> bool:
        """Whether anything in the file has a checksum."""
        return path in self._known

    def note(self, path: Path, offset: int, size: int, crc: int) -> None:
        """Remember the checksum of a range that was read."""
        with self._lock:
            self._seen[path][offset, size] = crc

    def check(self) -> int:
        """Compare every range that was touched; returns the bytes that were checked."""
        total = 0
        for path, seen in sorted(self._seen.items()):
            for entry in self._known[path]:
                end = entry.offset + entry.size
                parts = sorted((o, n, c) for (o, n), c in seen.items() if entry.offset <= o < end)
                if not parts:
                    continue
                found = _tiled(parts, entry)
                if (_reread(path, entry) if found is None else found) != entry.crc:
                    raise IntegrityError.of(
                        "checkpoint-damaged",
                        f"{entry.name} in {path} does not match its own checksum",
                        where=str(path),
                        hint="copy the file again from where it was written",
                    )
                total += entry.size
        return total


def _tiled(parts: list[tuple[int, int, int]], entry: Checksum) -> int | None:
    """The checksum of the whole range, when the parts cover it without overlap."""
    at, crc = entry.offset, 0
    for offset, size, part in parts:
        if offset != at:
            return None
        at, crc = at + size, combine(crc, part, size)
    return crc if at == entry.offset + entry.size else None


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


def room_in(held: memoryview, size: int) -> memoryview:
    """`size` bytes of a buffer, or of a new one for a row that is longer."""
    return held[:size] if size <= len(held) else memoryview(bytearray(size))


class Reader:
    """Fills buffers for one thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._files = OpenFiles(os.O_RDONLY | os.O_CLOEXEC)
        self._ledger = ledger
        self.scratch = memoryview(bytearray(CHUNK))
        """Room that anybody may use until something is read again."""

    def close(self) -> None:
        """Close every file."""
        self._files.close()

    def fill(self, bands: Bands, into: memoryview) -> int | None:
        """Put the bytes of `bands` into `into`; the CRC32, when reading gave it for nothing."""
        at = 0
        crc = None
        for band in bands:
            here = into[at : at + band.size]
            if band.count == 1:
                for strip in band.strips:
                    piece = into[at : at + strip.width]
                    crc = self._read(strip.file, strip.offset, piece)
                    at += strip.width
            else:
                self._rows(band, here)
                at += band.size
        only = len(bands) == 1 and bands[0].flat
        return crc if only else None

    def _read(self, path: Path | None, offset: int, into: memoryview) -> int | None:
        if path is None:
            into[:] = bytes(len(into))
            return None
        done, fd = 0, self._files[path]
        while done < len(into):
            n = os.preadv(fd, [into[done:]], offset + done)
            if n == 0:
                said = f"{path} ends at byte {offset + done}, {len(into) - done} bytes too early"
                raise IntegrityError.of("checkpoint-damaged", said, where=str(path))
            done += n
        if not self._ledger.watches(path):
            return None
        crc = checksum(into)
        self._ledger.note(path, offset, len(into), crc)
        return crc

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
        seen = self.scratch[: (rows - 1) * strip.stride + strip.width]
        self._read(strip.file, strip.offset, seen)
        shape, steps = (rows, strip.width), (strip.stride, 1)
        grid = np.frombuffer(seen, np.uint8)
        into[...] = np.lib.stride_tricks.as_strided(grid, shape, steps)


def _rows_at_once(strip: Strip) -> int:
    """Rows per read; wide rows with wide gaps are read one by one."""
    if strip.width >= _WIDE and strip.stride > 2 * strip.width:
        return 1
    return max(1, (CHUNK - strip.width) // strip.stride + 1)
