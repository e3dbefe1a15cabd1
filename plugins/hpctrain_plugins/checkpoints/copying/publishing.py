"""A folder appears whole or not at all: private name, fsync, rename."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpctrain.errors import ConfigError, IntegrityError

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def private_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` under a name nobody looks for; gone when the work fails."""
    check_free(out)
    folder = out.parent / f".{out.name}.{os.urandom(4).hex()}.partial"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        yield folder
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _refused(out, error) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _refused(out: Path, error: OSError) -> ConfigError:
    if error.errno in _FULL:
        return ConfigError.of(
            "disk-full",
            f"no room is left below {out.parent}; nothing was kept",
            where=str(out),
            hint="free some space, or give --out on another file system",
        )
    said = f"{error.filename or out.parent}: {error.strerror}; nothing was kept"
    return ConfigError.of("file", said, where=str(out))


def check_free(out: Path) -> None:
    """Refuse a name that is taken."""
    if out.exists() or out.is_symlink():
        raise ConfigError.of(
            "output-exists", f"{out} exists already", where=str(out), hint=f"mv {out} {out}.old"
        )


def publish(folder: Path, out: Path, *, fsync: bool) -> None:
    """Give the finished folder its name."""
    if fsync:
        for path in sorted(folder.rglob("*"), reverse=True):
            _sync(path)
        _sync(folder)
    check_free(out)
    folder.rename(out)
    if fsync:
        _sync(out.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def inside(name: str, where: Path) -> str:
    """A file name that a checkpoint gave, refused when it leads out of its folder."""
    path = Path(name)
    if not name or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise IntegrityError.of("checkpoint-unsafe", f"{where} names the file {name!r}", where=str(where))
    return name
