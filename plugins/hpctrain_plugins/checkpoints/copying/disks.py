"""Pages between memory and a disk of this machine, without copies of them in the page cache.

What is written with fsync goes to the disk in any case, and what was read back from there is proven to be on
it. To find and fill a page of the cache takes longer than to give the page away. (open(2), O_DIRECT)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from hpctrain_plugins.checkpoints.copying.buffers import whole_pages
from hpctrain_plugins.checkpoints.copying.files import OpenFiles

_LOCAL = ("ext4", "xfs", "overlay")
"""File systems of one machine. Those of many (Lustre, GPFS, NFS) send what is cached in many requests at
once, but let who writes without the cache wait for each answer."""

Move: TypeAlias = Callable[[int, memoryview, int], int]
"""File, memory and place in the file -> bytes that were moved."""


class Disk:
    """The open files of one thread whose whole pages go past the page cache."""

    def __init__(self, flags: int, move: Move) -> None:
        self._files = OpenFiles(flags | os.O_DIRECT)
        self._move = move
        self._refused = False

    def close(self) -> None:
        """Close every file."""
        self._files.close()

    def move(self, path: Path, at: int, data: memoryview) -> tuple[int, int]:
        """Move what of `data` is pages of the file; from where to where that was, and the rest is yours.

        A file system may refuse, or demand more than we know of: then it is asked no more.
        """
        first, last = (0, 0) if self._refused else whole_pages(data, at)
        done = first
        try:
            while done < last and (n := self._move(self._files[path], data[done:last], at + done)):
                done += n
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._refused = True
        return first, done


def is_local(folder: Path) -> bool:
    """Whether a disk of this machine holds the folder."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    kinds = [mount.partition(" - ")[2].split()[0] for mount in mounts if mount.split()[2] == number]
    return bool(kinds) and kinds[-1] in _LOCAL
