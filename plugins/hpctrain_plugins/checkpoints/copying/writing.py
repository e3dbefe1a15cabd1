"""Bytes from buffers into files."""

from __future__ import annotations

import os
from pathlib import Path

from hpctrain_plugins.checkpoints.copying.disks import Disk
from hpctrain_plugins.checkpoints.copying.files import OpenFiles

_BLOCK = 1 << 17
"""Bytes given to the page cache at once, up to the next multiple of it in the file: so the kernel holds each
in one piece of memory. Writes across those borders cost a tenth more CPU in all; larger pieces are hard to
find where the page cache is full, as after a training."""


class Writer:
    """Writes buffers into files, for one thread."""

    def __init__(self) -> None:
        self._files = OpenFiles(os.O_WRONLY)
        self._disk = Disk(os.O_WRONLY, os.pwrite)

    def close(self) -> None:
        """Close every file."""
        self._files.close()
        self._disk.close()

    def write(self, path: Path, at: int, data: memoryview, *, direct: bool) -> int:
        """Put `data` at byte `at`, whole pages past the page cache if `direct`; how many bytes wait in it."""
        first, last = self._disk.move(path, at, data) if direct else (0, 0)
        put(self._files[path], at, data[:first])
        put(self._files[path], at + last, data[last:])
        return len(data) - (last - first)


def put(fd: int, at: int, data: memoryview) -> None:
    """Put `data` at byte `at`, into the page cache."""
    done = 0
    while done < len(data):
        start = at + done
        done += os.pwrite(fd, data[done : done + _BLOCK - start % _BLOCK], start)
