"""Files that are there whole or not at all, whatever happens to the process."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

BLOCK = 1 << 20


class Sink(Protocol):
    """Anything with a method `write` that takes bytes."""

    def write(self, data: bytes, /) -> int: ...


@contextlib.contextmanager
def written(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and on the disk; a failure leaves nothing.

    Without `sync` it may be damaged when the machine itself fails: for what is checked before it is used.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk does not say which file it had no room for
        raise


def sweep(path: Path) -> None:
    """Remove what writers of this file left that were killed."""
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        partial.unlink(missing_ok=True)


def write(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write `data` as a file that appears whole or not at all."""
    with written(path, sync=sync) as file:
        file.write(data)


def settle(folder: Path) -> None:
    """Put the names in a folder on the disk, so that a later file is never there without an earlier."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, a megabyte at a time."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def crc32(path: Path) -> int:
    """A number that changes when a file is damaged."""
    number = 0
    for block in blocks(path):
        number = zlib.crc32(block, number)
    return number


def sha256(path: Path) -> str:
    """The content of a file as a name."""
    whole = hashlib.sha256()
    for block in blocks(path):
        whole.update(block)
    return whole.hexdigest()
