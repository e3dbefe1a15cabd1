"""The container that Hugging Face models come in: a JSON header, then bytes without gaps."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import IntegrityError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.output import OutFile, Part
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, PACKED_BITS, Packed, Tensor, whole

_LONGEST_HEADER = 100 << 20
"""What the format itself allows."""


@attrs.frozen
class Header:
    """What one file says it holds."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def read_header(path: Path) -> Header:
    """The tensors of a file, checked against its size; no tensor is read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(size - 8, _LONGEST_HEADER):
            raise _broken(path, "ends inside its header")
        text = file.read(length)
    try:
        document = documents.parse(text)
        metadata = {str(k): str(v) for k, v in document.pop("__metadata__", {}).items()}
        tensors = {name: _tensor(name, entry, path, 8 + length) for name, entry in document.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(path, f"has a header that cannot be read ({error})") from error
    end = _without_gaps(path, tensors, 8 + length)
    if end != size:
        raise _broken(path, f"has {size} bytes where its header says {end}")
    return Header(tensors, metadata)


def _tensor(name: str, entry: Mapping[str, Any], path: Path, data: int) -> Tensor:
    dtype, shape = entry["dtype"], tuple(int(n) for n in entry["shape"])
    low, high = entry["data_offsets"]
    if dtype in PACKED_BITS:
        return _packed(name, Packed(dtype, shape), path, (data, low, high))
    if dtype not in ITEMSIZE:
        raise IntegrityError.of(
            "checkpoint-damaged", f"{name} in {path} has the unknown type {dtype}", where=name
        )
    tensor = whole(name, dtype, shape, path, data + low)
    if min(shape, default=0) < 0 or high - low != tensor.nbytes or low < 0:
        message = f"{name} in {path} has {high - low} bytes where its shape needs {tensor.nbytes}"
        raise IntegrityError.of("checkpoint-shape", message, where=name)
    return tensor


def _packed(name: str, packed: Packed, path: Path, place: tuple[int, int, int]) -> Tensor:
    """A tensor of elements smaller than a byte, as its bytes."""
    data, low, high = place
    size, bits = divmod(math.prod(packed.shape) * PACKED_BITS[packed.dtype], 8)
    if bits or min(packed.shape, default=0) < 0 or (high - low, low < 0) != (size, False):
        message = f"{name} in {path} has {high - low} bytes where its shape needs {size}"
        raise IntegrityError.of("checkpoint-shape", message, where=name)
    return attrs.evolve(whole(name, "U8", (size,), path, data + low), packed=packed)


def _without_gaps(path: Path, tensors: Mapping[str, Tensor], at: int) -> int:
    """Where the last tensor ends; each must begin where the one before it ends."""
    rows = [(t.bands[0].strips[0].offset, t) for t in tensors.values() if t.bands]
    for start, tensor in sorted(rows, key=lambda row: row[0]):
        if start != at:
            raise _broken(path, f"has a gap or an overlap in front of {tensor.name}")
        at += tensor.nbytes
    return at


def _broken(path: Path, complaint: str) -> Exception:
    return IntegrityError.of("checkpoint-damaged", f"{path} {complaint}", where=str(path))


def plan_file(name: str, tensors: Iterable[tuple[str, Tensor, str]], metadata: Mapping[str, str]) -> OutFile:
    """A file with these (name, tensor, type), in this order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    placed, at = [], 0
    for key, tensor, dtype in tensors:
        size = tensor.numel * ITEMSIZE[dtype]
        stored = tensor.packed or Packed(dtype, tensor.shape)
        header[key] = {"dtype": stored.dtype, "shape": list(stored.shape), "data_offsets": [at, at + size]}
        placed.append((at, tensor, dtype))
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    parts = tuple(Part(start + offset, tensor, dtype) for offset, tensor, dtype in placed)
    return OutFile(name, start + at, parts, ((0, struct.pack("<Q", len(text)) + text),))
