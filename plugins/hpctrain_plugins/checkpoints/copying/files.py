"""The open files of one thread."""

from __future__ import annotations

import os
from pathlib import Path

_AT_ONCE = 32


class OpenFiles:
    """File descriptors by path, the least used closed first."""

    def __init__(self, flags: int) -> None:
        self._flags = flags | os.O_CLOEXEC
        self._descriptors: dict[Path, int] = {}

    def __getitem__(self, path: Path) -> int:
        fd = self._descriptors.pop(path, None)
        if fd is None:
            if len(self._descriptors) >= _AT_ONCE:
                os.close(self._descriptors.pop(next(iter(self._descriptors))))
            fd = os.open(path, self._flags)
        self._descriptors[path] = fd
        return fd

    def close(self) -> None:
        """Close every file."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])
