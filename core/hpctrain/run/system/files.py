"""Private files, written whole or not at all.

Everything we write is for its owner alone, whatever the caller's umask says: runs hold paths, names
and sometimes data that other users of a shared machine must not read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpctrain.errors import HpctrainError, IntegrityError
from hpctrain_job.files import shared, trust

FILE = shared.MODE
PROGRAM = 0o700
FOLDER = 0o700

_HINTS = {
    errno.ENOSPC: "free some space on this file system, or choose another folder",
    errno.EDQUOT: "free some space: your quota is used up",
    errno.EROFS: "choose a folder that can be written",
    errno.EACCES: "choose a folder that you may write",
    errno.ENOTDIR: "remove the file; a folder is needed there",
    errno.EISDIR: "remove the folder; a file is needed there",
}


@contextlib.contextmanager
def naming(path: Path, doing: str = "write") -> Iterator[None]:
    """Turn an OSError into one error that names `path` and says what the system said."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = _HINTS.get(error.errno or 0, "")
        if doing == "write" and error.errno == errno.ENOENT:
            hint = "make its folder first"
        raise HpctrainError.of("file", f"cannot {doing} {path}: {reason}", hint=hint) from error


def make_folder(path: Path) -> None:
    """Make `path` and its missing parents, each with mode 0700; what is there stays as it is."""
    with naming(path, "make the folder"):
        missing = [p for p in (path, *path.parents) if not p.is_dir()]
        for folder in reversed(missing):
            _make_one(folder)


def need_trusted(path: Path, accepted: trust.Accepted) -> None:
    """IntegrityError where another user could put something else in the place of the folder `path`."""
    fault = trust.folder(str(path), accepted)
    if fault is not None:
        raise _untrusted(f"{fault.path} {fault.reason}")


def need_own(path: Path) -> None:
    """IntegrityError unless the folder `path` is this user's, and his alone to write."""
    with naming(path, "read"):
        status = path.lstat()
    if status.st_uid != os.geteuid():
        raise _untrusted(f"{path} belongs to {trust.owner_name(status.st_uid)}, not to you")
    if status.st_mode & 0o022:
        raise _untrusted(f"{path} may be written by others")


def _untrusted(message: str) -> IntegrityError:
    return IntegrityError.of("not-trusted", message, hint="hpctrain help not-trusted")


def _make_one(folder: Path) -> None:
    try:
        folder.mkdir(FOLDER)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
        return
    folder.chmod(FOLDER)  # the umask may have taken even the owner's bits


def write(path: Path, data: str | bytes, *, program: bool = False) -> None:
    """Put `data` at `path` atomically: another reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}")
    with naming(path):
        try:
            write_new(temporary, data, program=program)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_new(path: Path, data: str | bytes, *, program: bool = False) -> None:
    """Write a file that does not exist yet, through to the disk: in a folder renamed later."""
    content = data.encode() if isinstance(data, str) else data
    mode = PROGRAM if program else FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def write_tree(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write files below a folder that is not there yet: all of them appear at once, or, after a kill, none.

    Below an empty folder that is there, and may be where somebody stands, they appear one by one.
    """
    make_folder(folder.parent)
    is_there = folder.exists()
    home = folder if is_there else folder.with_name(f".{folder.name[:100]}.{uuid.uuid4().hex}")
    try:
        for name, content in contents.items():
            make_folder((home / name).parent)
            write(home / name, content, program=name.endswith(".sh"))
        if not is_there:
            with naming(folder):
                home.rename(folder)
                sync_folder(folder.parent)
    except BaseException:
        if not is_there:
            shutil.rmtree(home, ignore_errors=True)
        raise


def append_line(path: Path, line: bytes) -> None:
    """Add one line with a single write; one that a crash left without its end is closed first."""
    with naming(path):
        shared.append_line(path, line)


def sync_folder(path: Path) -> None:
    """Make the names in `path` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
