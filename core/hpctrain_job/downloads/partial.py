"""Where a download waits until it is whole, so that a killed one continues."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def claim(shared: Path, into: Path) -> Iterator[Path]:
    """The folder to download to: `shared` where nobody else uses it now, else one beside `into`.

    The lock lies beside the folder, because the folder itself is moved away at the end; the kernel
    drops it when its holder dies. A file system without locks costs the resumption, nothing else.
    """
    shared.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(shared.with_name(shared.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = shared
        except OSError:
            folder = into.with_name(into.name + ".part")
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        with suppress(OSError):
            shutil.rmtree(folder)
    finally:
        os.close(handle)


def move(source: Path, into: Path) -> None:
    """Let `into` appear whole; an empty folder that waits there gives way."""
    if into.is_dir() and not any(into.iterdir()):
        into.rmdir()
    shutil.move(source, into)
