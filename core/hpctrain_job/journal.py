"""Files to which several writers add lines, each line whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpctrain_job import documents

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
