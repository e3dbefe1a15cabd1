"""Files of `torch.save`: which tensors they hold and where, without torch and without trust."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from hpctrain.plugin import ConfigError, HpctrainError, IntegrityError
from hpctrain_plugins.checkpoints import bands as b
from hpctrain_plugins.checkpoints.bands import Checksum
from hpctrain_plugins.checkpoints.containers import unpickle
from hpctrain_plugins.checkpoints.containers.unpickle import TensorRef
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, Origin, Tensor

_LONGEST_PICKLE = 1 << 30
_OLD = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How files began before torch 1.6: a number of their own, pickled."""


@attrs.frozen
class Archive:
    """The values of one file; tensors are found with `tensor`."""

    path: Path
    value: Any
    entries: Mapping[str, Checksum]

    def tensor(self, name: str, ref: TensorRef) -> Tensor:
        """The logical tensor behind a reference, checked against its entry."""
        dtype, size = ref.storage.dtype, ITEMSIZE[ref.storage.dtype]
        entry = self.entries.get(ref.storage.key)
        if entry is None:
            message = f"{name} points to entry {ref.storage.key}, which {self.path} does not have"
            raise IntegrityError.of("checkpoint-incomplete", message, where=name)
        if entry.size < ref.storage.numel * size:
            message = f"entry {entry.name} of {self.path} is too small for {name}"
            raise IntegrityError.of("checkpoint-shape", message, where=name)
        row = _contiguous(ref.shape[1:])
        rows = ref.shape[0] if ref.shape else 1
        step = ref.stride[0] if len(ref.stride) and rows > 1 else math.prod(ref.shape[1:])
        wide = math.prod(ref.shape[1:])
        plain = all(s == c or n == 1 for s, c, n in zip(ref.stride[1:], row, ref.shape[1:], strict=True))
        if not plain or step < wide:
            message = f"{name} in {self.path} is a transposed or repeated view, which is not supported"
            raise IntegrityError.of(
                "checkpoint-unsupported", message, where=name, hint="save it with .contiguous()"
            )
        last = ref.offset + (rows - 1) * step + wide if rows and wide else ref.offset
        if ref.offset < 0 or last > ref.storage.numel:
            raise IntegrityError.of(
                "checkpoint-shape", f"{name} in {self.path} leaves its storage", where=name
            )
        start = entry.offset + ref.offset * size
        if not rows * wide:
            return Tensor(name, dtype, ref.shape, ())
        strip = b.Strip(self.path, start, wide * size, step * size)
        origin = Origin(name, self.path, start, (last - ref.offset) * size)
        return Tensor(name, dtype, ref.shape, b.join([[b.Band(rows, (strip,))]]), origins=(origin,))

    def tensors(self, value: Any) -> dict[str, Tensor]:
        """The tensors of a flat mapping; what is no tensor is left out."""
        return {str(k): self.tensor(str(k), v) for k, v in value.items() if isinstance(v, TensorRef)}

    @property
    def crcs(self) -> list[Checksum]:
        """The checksums of all entries of the zip file."""
        return list(self.entries.values())


def pickle_of(path: Path) -> bytes:
    """The pickle of a file that `open_archive` has read."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.count("/") == 1 and n.endswith("/data.pkl"))
        return archive.read(name)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def open_archive(
    path: Path,
    *,
    offset: int = 0,
    length: int | None = None,
    extra_names: dict[tuple[str, str], Callable[..., Any]] | None = None,
    inert: tuple[str, ...] = (),
) -> Archive:
    """Read the directory and the pickle of a file, or of `length` bytes inside a file."""
    where = str(path) if length is None else f"{path} at {offset}"
    with path.open("rb") as file:
        window = file if length is None else _Window(file, offset, length)
        try:
            with zipfile.ZipFile(window) as archive:
                return _archive(path, archive, file, offset, where, extra_names, inert)
        except HpctrainError:
            raise
        except Exception as error:  # a name of other bytes, an offset before the file: zipfile promises none
            file.seek(offset)
            if file.read(len(_OLD)) == _OLD:
                raise _too_old(path) from error
            message = f"{where} is not a complete torch file ({error})"
            raise IntegrityError.of("checkpoint-damaged", message, where=where) from error


def _too_old(path: Path) -> ConfigError:
    message = f"{path} is in torch's form of before 1.6, which is not read"
    again = f"torch.save(torch.load('{path.name}', weights_only=True), '{path.name}')      (with torch)"
    return ConfigError.of("checkpoint-unsupported", message, where=str(path), hint=again)


def _archive(
    path: Path,
    archive: zipfile.ZipFile,
    file: BinaryIO,
    base: int,
    where: str,
    extra_names: dict[tuple[str, str], Callable[..., Any]] | None,
    inert: tuple[str, ...],
) -> Archive:
    infos = archive.infolist()
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED:  # and it could grow a thousandfold in memory
            message = f"{info.filename} in {where} is compressed, which torch.save never does"
            raise IntegrityError.of("checkpoint-damaged", message, where=where)
    pickles = [i for i in infos if i.filename.count("/") == 1 and i.filename.endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > _LONGEST_PICKLE:
        raise IntegrityError.of("checkpoint-damaged", f"{where} was not written by torch.save", where=where)
    root = pickles[0].filename.partition("/")[0]
    names = [i.filename for i in infos]
    if len(set(names)) != len(names):
        raise IntegrityError.of("checkpoint-damaged", f"{where} holds an entry twice", where=where)
    if f"{root}/byteorder" in names and _short(archive, f"{root}/byteorder") != b"little":
        raise IntegrityError.of("checkpoint-damaged", f"{where} is big-endian", where=where)
    entries = dict(_entries(infos, f"{root}/data/", file, base, where))
    value = unpickle.load(archive.read(pickles[0]), where, extra_names, inert)
    return Archive(path, value, entries)


def _short(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as entry:
        return entry.read(16)


def _entries(
    infos: list[zipfile.ZipInfo], prefix: str, file: BinaryIO, base: int, where: str
) -> Iterator[tuple[str, Checksum]]:
    for info in infos:
        if not info.filename.startswith(prefix):
            continue
        file.seek(base + info.header_offset)
        header = file.read(30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise IntegrityError.of(
                "checkpoint-damaged", f"{where} is damaged at {info.filename}", where=where
            )
        skip = 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        start = base + info.header_offset + skip
        key = info.filename.removeprefix(prefix)
        yield key, Checksum(start, info.file_size, info.CRC, info.filename)


class _Window(RawIOBase):
    """A part of a file that looks like a whole one."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file, self._start, self._length, self._at = file, start, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._length)[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._length - self._at)
        self._file.seek(self._start + self._at)
        data = self._file.read(left if size < 0 else min(size, left))
        self._at += len(data)
        return data
