"""What was written goes to the disk while more is computed, so that the last fsync finds little left."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

EVERY = 64 << 20
"""Bytes between two requests to bring them to the disk, in one file or in many small ones."""


class Writeback:
    """One thread that synchronises files; what fails there is raised at the end of the `with` block."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Path | None] = SimpleQueue()
        self._written: set[Path] = set()
        self._size = 0
        self._failures: list[OSError] = []
        self._stop = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Writeback:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop = error is not None
        self._queue.put(None)
        self._thread.join()
        # The kernel tells an error once: a later fsync of the same file would succeed.
        if self._failures and error is None:
            raise self._failures[0]

    def note(self, path: Path, size: int) -> None:
        """`size` more bytes of the file are written; callers hold a lock."""
        self._written.add(path)
        self._size += size
        if self._size >= EVERY:
            for written in self._written:
                self._queue.put(written)
            self._written, self._size = set(), 0

    def _work(self) -> None:
        try:
            while (path := self._queue.get()) is not None and not self._stop:
                _sync(path)
        except OSError as error:
            self._failures.append(error)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)
