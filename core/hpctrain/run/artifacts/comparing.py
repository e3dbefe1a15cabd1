"""What other users published: compared with its manifest, once for each state of its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from hpctrain.errors import HpctrainError
from hpctrain.run.artifacts.artifact import differing
from hpctrain.run.system import files

FOLDER = "compared"
"""Below the user's own state: a file for each artifact, with the state of its files in which it was whole."""


def damage(link: Path, state: Path | None) -> str:
    """The first file of somebody else's artifact that is not as it was published, or nothing.

    Tens of gigabytes are not read again for each plan. Who writes to a file cannot hide it: its change time
    is the system's. What changes below the file system is found by the job, which compares every time.
    """
    stamp = _stamp(link)
    note = state / FOLDER / sha256(os.fsencode(link.resolve())).hexdigest() if state else None
    if note and _text(note) == stamp:
        return ""
    if file := differing(link):
        return file
    if note:
        _keep(note, stamp)
    return ""


def _stamp(link: Path) -> str:
    """What changes with every change of the artifact's files."""
    hashed = sha256()
    for path, status in _statuses(link.resolve().parent):
        row = (path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        hashed.update(repr(row).encode())
    return hashed.hexdigest()


def _statuses(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    for at, names, file_names in os.walk(folder):
        names.sort()
        for name in sorted(file_names):
            path = f"{at}/{name}"
            yield path, os.lstat(path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _keep(note: Path, stamp: str) -> None:
    """Remember it; where that cannot be, it is compared again."""
    try:
        files.make_folder(note.parent)
        files.write(note, stamp)
    except (OSError, HpctrainError):
        return
