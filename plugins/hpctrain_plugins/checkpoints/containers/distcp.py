"""The directory of torch's distributed checkpoints (`.metadata`), and its items: each a small torch file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.bands import Checksum
from hpctrain_plugins.checkpoints.containers import torchzip, unpickle
from hpctrain_plugins.checkpoints.containers.unpickle import Inert, TensorRef
from hpctrain_plugins.checkpoints.copying.publishing import inside
from hpctrain_plugins.checkpoints.tensors import Tensor

DIRECTORY = ".metadata"
METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"
_PLANNER = "torch.distributed.checkpoint.planner"
_MEGATRON = "megatron.core.dist_checkpointing.strategies.torch"
_CLASSES = (
    *((METADATA, name) for name in ("Metadata", "TensorStorageMetadata", "BytesStorageMetadata")),
    *((METADATA, name) for name in ("TensorProperties", "ChunkStorageMetadata", "MetadataIndex")),
    *((METADATA, name) for name in ("StorageMeta", "_MEM_FORMAT_ENCODING")),
    (FILESYSTEM, "_StorageInfo"),
    ("pathlib", "PosixPath"),
    ("pathlib", "Path"),
    ("pathlib._local", "PosixPath"),
    (_MEGATRON, "MCoreMetadata"),
)
_PLANS = (
    *((_PLANNER, name) for name in ("SavePlan", "WriteItem", "WriteItemType", "TensorWriteData")),
    (_MEGATRON, "MCoreSavePlan"),
)


class _Dropped(Inert):
    """Stands for everything in the plans of a save, which Megatron-Core keeps for its next one."""

    def __setstate__(self, state: Any) -> None:
        """Keep nothing."""


RECORDS: Mapping[tuple[str, str], type[Inert]] = {
    **{pair: type(pair[1], (Inert,), {"origin": pair}) for pair in _CLASSES},
    **dict.fromkeys(_PLANS, _Dropped),
}
"""The classes of a directory, by module and name."""


@attrs.frozen
class Item:
    """One box of a tensor: where it belongs, and where its bytes are."""

    name: str
    offset: tuple[int, ...]
    path: Path
    start: int
    length: int

    def tensor(self, crcs: dict[Path, list[Checksum]]) -> Tensor:
        """The tensor of the box; the checksums of its file are added to `crcs`."""
        archive = torchzip.open_archive(self.path, offset=self.start, length=self.length)
        if not isinstance(archive.value, TensorRef):
            message = f"{self.name} is not a tensor in {self.path}"
            raise IntegrityError.of("checkpoint-damaged", message, where=self.name)
        crcs.setdefault(self.path, []).extend(archive.crcs)
        return archive.tensor(self.name, archive.value)


@attrs.frozen
class Directory:
    """What a directory says of the tensors; objects are left out, and counted."""

    shapes: dict[str, tuple[int, ...]]
    items: dict[str, list[Item]]
    paths: dict[str, tuple[str, ...]]
    """The keys that led to a tensor in what was saved, where the saver noted them."""
    entries: int
    true_shapes: dict[str, tuple[int, ...]]
    """Of tensors that Megatron-Core before 0.16 saved in another shape than they have."""


def read(step: Path) -> Directory:
    """The directory of a step; IntegrityError where it is no directory, or names a file that is missing."""
    file = step / DIRECTORY
    metadata = _fields(unpickle.load(file.read_bytes(), str(file), dict(RECORDS)), file)
    shapes = {}
    for name, entry in metadata.get("state_dict_metadata", {}).items():
        fields = entry.state if isinstance(entry, Inert) and isinstance(entry.state, dict) else {}
        if "chunks" in fields:
            shapes[str(name)] = tuple(fields["size"])
    if not shapes:
        raise IntegrityError.of("checkpoint-damaged", f"{file} lists no tensors", where=str(file))
    planned = metadata.get("planner_data") or {}
    reshaped = metadata.get("mcore_data") or {}
    return Directory(
        shapes,
        _items(metadata, step, file),
        {str(k): tuple(map(str, v)) for k, v in planned.items()},
        len(metadata["state_dict_metadata"]),
        {
            str(name): tuple(noted["nd_reformulated_orig_global_shape"])
            for name, noted in reshaped.items()
            if noted.get("nd_reformulated_orig_global_shape")
        },
    )


def _fields(value: Any, file: Path) -> dict[str, Any]:
    if isinstance(value, Inert) and isinstance(value.state, dict):
        return value.state
    raise IntegrityError.of(
        "checkpoint-damaged", f"{file} holds a record that cannot be read", where=str(file)
    )


def _items(metadata: dict[str, Any], step: Path, file: Path) -> dict[str, list[Item]]:
    out: defaultdict[str, list[Item]] = defaultdict(list)
    files: dict[str, Path] = {}
    for index, info in metadata.get("storage_data", {}).items():
        key, where = _fields(index, file), _fields(info, file)
        name, relative = str(key["fqn"]), str(where["relative_path"])
        if where.get("transform_descriptors"):
            raise ConfigError.of("checkpoint-unsupported", f"{name} is stored compressed", where=name)
        if relative not in files:
            path = step / inside(relative, file)
            if not path.is_file():
                raise IntegrityError.of("checkpoint-incomplete", f"{path} is missing", where=str(path))
            files[relative] = path
        offset = tuple(key.get("offset") or ())
        item = Item(name, offset, files[relative], int(where["offset"]), int(where["length"]))
        out[name].append(item)
    return dict(out)
