"""Files that several programs of a user write: each line is whole or not there, and who must not write at the
same time waits for a turn."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents

MODE = 0o600


def append_line(path: Path, line: bytes) -> None:
    """Add one line with a single write, so that lines of several writers never mix.

    A last line that a crash left without its end is closed first: it is lost, this one is not.
    """
    descriptor = open_append(path)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = b"\n" * torn + line + b"\n"
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_append(path: Path) -> int:
    """A descriptor that appends to `path`, made with mode 0600 where it is missing."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, MODE)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, MODE)
    return descriptor


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of such a file, none where it is not there; a line that was torn is left out."""
    try:
        text = documents.whole(path)
    except FileNotFoundError:
        return
    for line in text.split(b"\n")[:-1]:
        if not line.startswith(b"{"):  # half a million lines of rubbish would cost seconds of errors
            continue
        try:
            entry = documents.parse(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


@contextlib.contextmanager
def one_at_a_time(lock: Path, seconds: float) -> Iterator[None]:
    """What a user's commands and jobs must not do at the same time, they do in turns.

    Who cannot have his turn in time, or on a disk without locks, goes on without.
    """
    with lock.open("a") as file:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        yield
