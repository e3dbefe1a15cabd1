"""Where a download waits until it is whole, so that a killed one continues."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hpctrain_job.web import Failed


class NoSpace(Failed):
    """The file system has no room for what is to come."""

    exit_code = 73


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


def free_or_fail(folder: Path, needed: int, *, quota_gb: float | None = None) -> None:
    """Stop before the first byte when the file system, or the site's quota, cannot hold `needed` more.

    What fills the quota already is known to the site's own tools alone; what is too large for an empty one
    is known here.
    """
    if quota_gb is not None and needed / 1e9 > quota_gb:
        raise NoSpace(f"{needed / 1e9:.1f} GB are to come, and the site's quota there is {quota_gb:,g} GB")
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpace(f"{folder} has {free / 1e9:.1f} GB left, {needed / 1e9:.1f} GB are to come")
