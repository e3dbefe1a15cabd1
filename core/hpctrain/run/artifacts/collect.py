"""Find and remove what killed builders left behind; never something that is published."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from hpctrain.run.system import files
from hpctrain.run.this_computer import host_name

DAY = 24 * 3600.0

_WORK = re.compile(r"\.hpc-.+\.(?P<host>[A-Za-z0-9-]*)\.(?P<pid>\d+)\.[0-9a-f]{8}\Z", re.ASCII)
_LEFTOVER = re.compile(r"\.new-[0-9a-f]{32}\Z|\.gone-(hpc|new)-", re.ASCII)
_GONE = ".gone-"
_DEEPEST = 3
"""Folders below a role's root in which artifacts are looked for."""


@frozen(kw_only=True)
class Orphan:
    """A work folder that nobody will publish any more."""

    path: Path
    age_s: float
    bytes: int


def orphans(roots: Iterable[Path], *, older_than_s: float = DAY, now: float | None = None) -> list[Orphan]:
    """Unpublished work below `roots` in which nothing changed for `older_than_s`.

    A builder of this host that still lives keeps its work; of other hosts only the age is known.
    """
    moment = time.time() if now is None else now
    return [
        orphan
        for root in roots
        for folder in _folders(root, _DEEPEST)
        for path in _candidates(folder)
        if (orphan := _orphan(path, moment)).age_s >= older_than_s
    ]


def remove(orphan: Orphan) -> bool:
    """Delete one orphan; False when it was published or taken away meanwhile.

    It is renamed first: a link that is made from now on dangles, and one made before is found.
    """
    if orphan.path.name.startswith(_GONE):
        gone = orphan.path
    else:
        gone = orphan.path.with_name(_GONE + orphan.path.name.lstrip("."))
        try:
            orphan.path.rename(gone)
        except FileNotFoundError:
            return False
        if orphan.path.name in _published(orphan.path.parent):
            gone.rename(orphan.path)
            return False
    with files.naming(gone, "remove"):
        _delete(gone)
    return True


def _folders(root: Path, deep: int) -> Iterator[Path]:
    if not root.is_dir():
        return
    yield root
    if deep:
        with contextlib.suppress(PermissionError):
            for entry in sorted(root.iterdir()):
                if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
                    yield from _folders(entry, deep - 1)


def _candidates(folder: Path) -> list[Path]:
    with contextlib.suppress(PermissionError, FileNotFoundError):  # a builder may end meanwhile
        published = _published(folder)
        return [p for p in sorted(folder.iterdir()) if p.name not in published and _left(p)]
    return []


def _left(path: Path) -> bool:
    """Whether this is a work folder of ours whose builder is gone, as far as we can know."""
    match = _WORK.match(path.name)
    if not match and not _LEFTOVER.match(path.name):
        return False
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    if match is None:
        return True
    return not (match["host"] == _host() and _alive(int(match["pid"])))


def _published(folder: Path) -> set[str]:
    """Names of the work folders that a link in `folder` points into."""
    links = (path for path in folder.iterdir() if path.is_symlink())
    return {os.readlink(link).partition("/")[0] for link in links}  # noqa: PTH115  (relative, as text)


def _orphan(path: Path, now: float) -> Orphan:
    newest, size = path.lstat().st_mtime, 0
    for folder, _, names in os.walk(path):
        for entry in (folder, *(f"{folder}/{name}" for name in names)):
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(entry)
                newest, size = max(newest, status.st_mtime), size + status.st_blocks * 512
    return Orphan(path=path, age_s=now - newest, bytes=size)


def _delete(path: Path) -> None:
    for folder, _, _ in os.walk(path):  # packages may hold folders that are read-only
        Path(folder).chmod(files.FOLDER)
    shutil.rmtree(path)


def _host() -> str:
    """As publish.sh writes it into the name."""
    return re.sub(r"[^A-Za-z0-9-]", "-", host_name().partition(".")[0])


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
