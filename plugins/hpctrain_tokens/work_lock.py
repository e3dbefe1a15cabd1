"""One at a time: who makes a result holds the folder of its unfinished work."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpctrain_tokens.faults import DataError

TRIES = 100
"""So often another one may end, and take the folder away, just between two calls of ours."""


@contextmanager
def lock(folder: Path, prefix: Path) -> Iterator[None]:
    """Hold `folder` for making `prefix`; an error where another process of any node holds it.

    The lock ends with the process, and its workers have no part in it (`lockf`, not `flock`): a killed
    one can be started again at once. A file system without locks has none, and nothing is refused there.
    """
    handle = _locked_handle(folder, prefix)
    try:
        yield
    finally:
        os.close(handle)


def _locked_handle(folder: Path, prefix: Path) -> int:
    for _ in range(TRIES):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            break
        except OSError:
            return handle
        if _is_same_file(handle, path):
            return handle
        os.close(handle)
    raise DataError.of(
        "data-busy",
        f"another command is making {prefix.name}",
        file=str(folder),
        hint="wait until it has ended: the same command then finds the result, or resumes it",
    )


def _is_same_file(handle: int, path: Path) -> bool:
    """Whether what is held is still there: the one before may have ended, and removed it, meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
