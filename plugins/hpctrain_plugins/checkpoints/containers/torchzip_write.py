"""Writes what `torch.load(weights_only=True, mmap=True)` reads: zip or zip64, all stored."""

from __future__ import annotations

import io
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from hpctrain_plugins.checkpoints.containers.torchzip import Archive
from hpctrain_plugins.checkpoints.containers.unpickle import STORAGES, Inert, Marker, Size
from hpctrain_plugins.checkpoints.output import OutFile, Part
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, Tensor, whole

ZIP64_FROM = 0xFFFFFFFF
"""From this size on the long records are written."""

_ALIGN = 64
_STORAGE_OF = {dtype: name for name, dtype in reversed(STORAGES.items()) if name != "UntypedStorage"}
_ROOT = "archive"


@attrs.frozen
class Saved:
    """A tensor in a structure that is to be written, with the type it gets."""

    tensor: Tensor
    dtype: str


class _Pickle:
    """Protocol 2, only the values that checkpoints are made of."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self.saved: list[Saved] = []

    def dump(self, value: Any) -> bytes:
        self.out.write(b"\x80\x02")
        self._put(value)
        self.out.write(b".")
        return self.out.getvalue()

    def _put(self, value: Any) -> None:
        if isinstance(value, Saved):
            self._tensor(value)
        elif isinstance(value, Inert):
            self._object(value)
        elif isinstance(value, Marker):
            self.out.write(f"ctorch\n{value.name}\n".encode())
        elif isinstance(value, type) and issubclass(value, Inert):
            self.out.write("c{}\n{}\n".format(*value.origin).encode())
        elif isinstance(value, Mapping):
            self._mapping(value)
        elif isinstance(value, Size):
            self.out.write(b"ctorch\nSize\n")
            self._put((tuple(value),))
            self.out.write(b"R")
        elif isinstance(value, (list, tuple)):
            self.out.write(b"](" if isinstance(value, list) else b"(")
            for item in value:
                self._put(item)
            self.out.write(b"e" if isinstance(value, list) else b"t")
        else:
            self.out.write(_scalar(value))

    def _mapping(self, value: Mapping[Any, Any]) -> None:
        ordered = isinstance(value, OrderedDict)
        self.out.write(b"ccollections\nOrderedDict\n)R(" if ordered else b"}(")
        for key, item in value.items():
            self._put(key)
            self._put(item)
        self.out.write(b"u")
        attributes = vars(value) if ordered else {}
        if attributes:  # a module's state has the versions of its parts there
            self._put(attributes)
            self.out.write(b"b")

    def _object(self, value: Inert) -> None:
        """An object of a class that is not ours, as it was: made of its arguments, or given its state."""
        module, name = value.origin
        if not value.is_whole:
            raise TypeError(f"a {name} with items has no place in a checkpoint")
        self.out.write(f"c{module}\n{name}\n".encode())
        self._put(value.args)
        self.out.write(b"R" if value.args else b"\x81")
        if value.state is not None:
            self._put(value.state)
            self.out.write(b"b")

    def _tensor(self, saved: Saved) -> None:
        key = len(self.saved)
        self.saved.append(saved)
        numel = saved.tensor.numel
        shape = saved.tensor.shape
        stride: list[int] = []
        step = 1
        for length in reversed(shape):
            stride.insert(0, step)
            step *= length
        put = self.out.write
        put(b"ctorch._utils\n_rebuild_tensor_v2\n((")
        self._put("storage")
        put(f"ctorch\n{_STORAGE_OF[saved.dtype]}\n".encode())
        for value in (str(key), "cpu", numel):
            self._put(value)
        put(b"tQ")
        for plain in (0, shape, tuple(stride), False):
            self._put(plain)
        put(b"ccollections\nOrderedDict\n)RtR")


def _scalar(value: Any) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value) if -(2**31) <= value < 2**31 else _long(value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode()
        return b"X" + struct.pack("<I", len(text)) + text
    raise TypeError(f"{type(value).__name__} has no place in a checkpoint")


def _long(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


@attrs.frozen
class _Entry:
    name: bytes
    size: int
    header: int
    data: int
    text: bytes | None

    @property
    def padding(self) -> int:
        return self.data - self.header


def to_pickle(value: Any) -> bytes:
    """A pickle of `value`, in which no tensor is."""
    return _Pickle().dump(value)


def plan_file(name: str, value: Any, zip64_from: int = ZIP64_FROM) -> OutFile:
    """A `.pt` file that holds `value`, whose tensors are `Saved`."""
    pickler = _Pickle()
    text = pickler.dump(value)
    return _file(name, text, {str(key): saved for key, saved in enumerate(pickler.saved)}, zip64_from)


def plan_copy(name: str, archive: Archive, text: bytes) -> OutFile:
    """A file with the tensors of another, byte by byte, and `text` for its pickle."""
    blocks = {
        key: Saved(whole(entry.name, "U8", (entry.size,), archive.path, entry.offset), "U8")
        for key, entry in archive.entries.items()
    }
    return _file(name, text, blocks, ZIP64_FROM)


def _file(name: str, text: bytes, blocks: Mapping[str, Saved], zip64_from: int) -> OutFile:
    contents: list[tuple[str, int, bytes | None]] = [
        ("data.pkl", len(text), text),
        ("byteorder", 6, b"little"),
    ]
    contents += [(f"data/{key}", s.tensor.numel * ITEMSIZE[s.dtype], None) for key, s in blocks.items()]
    contents.append(("version", 2, b"3\n"))
    entries, at = _place(contents, zip64_from)
    data_entries = [e for e in entries if e.text is None]
    parts = tuple(Part(e.data, s.tensor, s.dtype) for e, s in zip(data_entries, blocks.values(), strict=True))
    empty = b"".join(_directory(entries, dict.fromkeys(range(len(entries)), 0), at, zip64_from))
    texts = tuple((e.data, e.text) for e in entries if e.text is not None)
    seal = partial(_seal, entries, at, zip64_from)
    return OutFile(name, at + len(empty), parts, texts, seal)


def _place(contents: Iterable[tuple[str, int, bytes | None]], zip64_from: int) -> tuple[list[_Entry], int]:
    entries, at = [], 0
    for name, size, text in contents:
        full = f"{_ROOT}/{name}".encode()
        long = 20 if size >= zip64_from else 0
        start = at + 30 + len(full) + long
        data = start + 4 + (-(start + 4) % _ALIGN)
        entries.append(_Entry(full, size, at, data, text))
        at = data + size
    return entries, at


def _seal(entries: list[_Entry], end: int, zip64_from: int, crcs: list[int]) -> Iterable[tuple[int, bytes]]:
    """Headers and directory, which hold the checksums of the data."""
    remaining_crcs = iter(crcs)
    entry_crcs = {
        i: next(remaining_crcs) if e.text is None else zlib.crc32(e.text) for i, e in enumerate(entries)
    }
    for i, entry in enumerate(entries):
        yield entry.header, _local(entry, entry_crcs[i], zip64_from)
    yield end, b"".join(_directory(entries, entry_crcs, end, zip64_from))


def _local(entry: _Entry, crc: int, zip64_from: int) -> bytes:
    long = entry.size >= zip64_from
    extra = struct.pack("<HHQQ", 1, 16, entry.size, entry.size) if long else b""
    room = entry.data - entry.header - 30 - len(entry.name) - len(extra)
    extra += struct.pack("<2sH", b"FB", room - 4) + b"Z" * (room - 4)
    size = 0xFFFFFFFF if long else entry.size
    version = 45 if long else 20
    fixed = struct.pack(
        "<4sHHHHHIIIHH", b"PK\x03\x04", version, 0, 0, 0, 0x21, crc, size, size,
        len(entry.name), len(extra),
    )  # fmt: skip
    return fixed + entry.name + extra


def _directory(entries: list[_Entry], crcs: Mapping[int, int], end: int, zip64_from: int) -> Iterable[bytes]:
    length = 0
    for i, entry in enumerate(entries):
        record = _central(entry, crcs[i], zip64_from)
        length += len(record)
        yield record
    count = len(entries)
    if end >= zip64_from or length >= zip64_from or count >= 0xFFFF:
        yield struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, end)
        yield struct.pack("<4sIQI", b"PK\x06\x07", 0, end + length, 1)
        count, length, end = min(count, 0xFFFF), min(length, 0xFFFFFFFF), 0xFFFFFFFF
    yield struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, length, end, 0)


def _central(entry: _Entry, crc: int, zip64_from: int) -> bytes:
    size, header, extra = entry.size, entry.header, b""
    if size >= zip64_from:
        extra, size = struct.pack("<QQ", size, size), 0xFFFFFFFF
    if header >= zip64_from:
        extra, header = extra + struct.pack("<Q", header), 0xFFFFFFFF
    if extra:
        extra = struct.pack("<HH", 1, len(extra)) + extra
    version = 45 if extra else 20
    return struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", version, version, 0, 0, 0, 0x21, crc, size, size,
        len(entry.name), len(extra), 0, 0, 0, 0, header,
    ) + entry.name + extra  # fmt: skip
