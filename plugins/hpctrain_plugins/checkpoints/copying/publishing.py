"""A folder appears whole or not at all: private name, fsync, rename."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hpctrain.plugin import ConfigError, HpctrainError, IntegrityError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_END = ".partial"


@contextmanager
def private_folder(out: Path, key: str = "") -> Iterator[Path]:
    """A folder beside `out` under a name that only who has the `key` looks for; gone when the work fails."""
    check_free(out)
    folder = out.parent / hidden_name(out.name, platform.node(), key or os.urandom(4).hex())
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            yield folder
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _refused(out, error) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def hidden_name(out: str, host: str, key: str) -> str:
    """What a folder is called until it is finished, by the computer and eight digits of one conversion."""
    return f".{out}.{host}.{key}{_END}"


def _begin(out: Path) -> str:
    return f".{out.name}.{platform.node()}."


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder and hold its lock, which the kernel drops when this process ends, however it does."""
    waiting = folder.with_suffix(".new")  # not swept by another before it is locked
    waiting.mkdir()
    with ExitStack() as stack:
        with suppress(OSError):  # a file system without locks: then nobody sweeps here
            stack.enter_context(_lock(waiting))
        waiting.rename(folder)
        yield


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def sweep(out: Path) -> Iterator[str]:
    """Remove what conversions to `out` left that were killed on this host, and say so."""
    for folder in sorted(out.parent.glob(f"{glob.escape(_begin(out))}*{_END}")):
        if not re.fullmatch("[0-9a-f]{8}", folder.name.removeprefix(_begin(out)).removesuffix(_END)):
            continue
        try:
            with _lock(folder):
                shutil.rmtree(folder)
            yield f"removed {folder}, which a killed conversion left"
        except BlockingIOError:
            yield f"{folder} is of a conversion that runs now"
        except OSError as error:
            yield f"{folder} was left and stays ({error.strerror}): remove it if no conversion runs"


def _refused(out: Path, error: OSError) -> HpctrainError:
    """The machine's fault, not the request's: the class of a file that cannot be written."""
    if error.errno in _FULL:
        return HpctrainError.of(
            "disk-full",
            f"no room is left below {out.parent}; nothing was kept",
            where=str(out),
            hint="free some space, or give --out on another file system",
        )
    message = f"{error.filename or out.parent}: {error.strerror}; nothing was kept"
    return HpctrainError.of("file", message, where=str(out))


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
            sync(path)
        sync(folder)
    check_free(out)
    folder.rename(out)
    if fsync:
        sync(out.parent)


def sync(path: Path) -> None:
    """Bring a file or folder to the disk."""
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
