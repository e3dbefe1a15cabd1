"""Writes what `torch.distributed.checkpoint` reads: boxes of tensors in files, and their directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from hpctrain_plugins.checkpoints.containers.distcp import FILESYSTEM, METADATA, RECORDS, Item
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved, plan_file, to_pickle
from hpctrain_plugins.checkpoints.containers.unpickle import DTYPES, Inert, Marker, Size, object_like
from hpctrain_plugins.checkpoints.output import OutFile, Part
from hpctrain_plugins.checkpoints.tensors import Tensor, whole

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@attrs.define
class Stored:
    """A whole tensor, and the boxes that it is written in: where each begins, and what is in it."""

    shape: tuple[int, ...]
    dtype: str
    boxes: list[tuple[tuple[int, ...], Tensor]] = attrs.field(factory=list)


@attrs.frozen
class _StoredItem:
    """Where an item will lie."""

    name: str
    offset: tuple[int, ...] | None
    file: str
    start: int
    length: int


def plan_files(
    tensors: Mapping[str, Stored],
    objects: Iterable[str],
    aliases: Mapping[str, str],
    limit: int,
    copied: Mapping[str, Item] | None = None,
) -> tuple[list[OutFile], bytes]:
    """The files, each of up to `limit` bytes, and the directory.

    Every one of `objects` is a list with None, for all of which one item stands; `copied` are objects of
    another checkpoint, byte by byte; an alias is another name for the same boxes.
    """
    waiting: list[OutFile] = []
    files: list[OutFile] = []
    stored_items: list[_StoredItem] = []

    def place(name: str, offset: tuple[int, ...] | None, item: OutFile) -> None:
        if waiting and sum_of(waiting) + item.size > limit:
            files.append(_joined(_file_name(len(files)), waiting))
            waiting.clear()
        stored_items.append(_StoredItem(name, offset, _file_name(len(files)), sum_of(waiting), item.size))
        waiting.append(item)

    for name, stored in tensors.items():
        for offset, tensor in stored.boxes:
            place(name, offset, plan_file("", Saved(tensor, stored.dtype)))
    for name, item in (copied or {}).items():
        place(name, None, _unread(item))
    named = list(objects)
    if named:
        place(named[0], None, plan_file("", [None]))
        stored_items += [attrs.evolve(stored_items[-1], name=name) for name in named[1:]]
    named += copied or ()
    files.append(_joined(_file_name(len(files)), waiting))
    under = {target: name for name, target in aliases.items()}
    stored_items += [attrs.evolve(item, name=under[item.name]) for item in stored_items if item.name in under]
    stored_as = {**tensors, **{name: tensors[target] for name, target in aliases.items()}}
    return files, _directory(stored_as, named, stored_items)


def _unread(item: Item) -> OutFile:
    """An item as it lies in its file."""
    data = whole(item.name, "U8", (item.length,), item.path, item.start)
    return OutFile("", item.length, (Part(0, data, data.dtype),))


def sum_of(items: Sequence[OutFile]) -> int:
    """How many bytes the items take together."""
    return sum(item.size for item in items)


def _file_name(number: int) -> str:
    return f"__0_{number}.distcp"


def _joined(name: str, items: Sequence[OutFile]) -> OutFile:
    """The items one after the other, as one file."""
    starts, at = [], 0
    for item in items:
        starts.append(at)
        at += item.size
    placed = list(zip(starts, items, strict=True))
    parts = tuple(Part(start + p.offset, p.tensor, p.dtype) for start, item in placed for p in item.parts)
    texts = tuple((start + offset, text) for start, item in placed for offset, text in item.texts)
    return OutFile(name, at, parts, texts, partial(_seal, placed))


def _seal(placed: Sequence[tuple[int, OutFile]], crcs: list[int]) -> Iterable[tuple[int, bytes]]:
    used = 0
    for start, item in placed:
        item_crcs = crcs[used : used + len(item.parts)]
        used += len(item.parts)
        for offset, text in item.seal(item_crcs) if item.seal else ():
            yield start + offset, text


def _directory(
    tensors: Mapping[str, Stored], objects: Sequence[str], stored_items: Sequence[_StoredItem]
) -> bytes:
    """The pickle of `.metadata`, with the fields that every torch since 2.2 reads."""
    listed: dict[str, Inert] = {name: _tensor(stored) for name, stored in tensors.items()}
    listed |= {name: _record(METADATA, "BytesStorageMetadata", None) for name in objects}
    state = {
        "state_dict_metadata": listed,
        "planner_data": None,
        "storage_data": {_index(item): _where(item) for item in stored_items},
        "storage_meta": None,
        "version": "1.0.0",
    }
    return to_pickle(_record(METADATA, "Metadata", state))


def _tensor(stored: Stored) -> Inert:
    chunks = [
        _record(METADATA, "ChunkStorageMetadata", {"offsets": Size(offset), "sizes": Size(tensor.shape)})
        for offset, tensor in stored.boxes
    ]
    layout = object_like(("torch.serialization", "_get_layout"), None, "torch.strided")
    memory = RECORDS[METADATA, "_MEM_FORMAT_ENCODING"](0)
    properties = _record(
        METADATA, "TensorProperties", (Marker(_NAMES[stored.dtype]), layout, False, memory, False)
    )
    fields = {"properties": properties, "size": Size(stored.shape), "chunks": chunks}
    return _record(METADATA, "TensorStorageMetadata", fields)


def _index(item: _StoredItem) -> Inert:
    offset = None if item.offset is None else Size(item.offset)
    return _record(METADATA, "MetadataIndex", {"fqn": item.name, "offset": offset, "index": None})


def _where(item: _StoredItem) -> Inert:
    fields = {"relative_path": item.file, "offset": item.start, "length": item.length}
    return _record(FILESYSTEM, "_StorageInfo", fields)


def _record(module: str, name: str, state: Any) -> Inert:
    instance = RECORDS[module, name]()
    instance.state = state
    return instance
