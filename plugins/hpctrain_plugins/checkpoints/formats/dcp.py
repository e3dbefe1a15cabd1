"""torch's distributed checkpoints (DCP): a pickled directory, and every box a small torch file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip, unpickle
from hpctrain_plugins.checkpoints.containers.unpickle import Inert, TensorRef
from hpctrain_plugins.checkpoints.copying.publishing import inside
from hpctrain_plugins.checkpoints.foreign import is_megatron_core
from hpctrain_plugins.checkpoints.formats import roots
from hpctrain_plugins.checkpoints.formats.grids import Box, assemble, describe
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model

HPCTRAIN_API = 1

_DIRECTORY = ".metadata"
_METADATA = "torch.distributed.checkpoint.metadata"
_CLASSES = (
    (_METADATA, "Metadata"),
    (_METADATA, "TensorStorageMetadata"),
    (_METADATA, "BytesStorageMetadata"),
    (_METADATA, "TensorProperties"),
    (_METADATA, "ChunkStorageMetadata"),
    (_METADATA, "MetadataIndex"),
    (_METADATA, "StorageMeta"),
    (_METADATA, "_MEM_FORMAT_ENCODING"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("pathlib", "PosixPath"),
    ("pathlib", "Path"),
    ("pathlib._local", "PosixPath"),
)
_RECORDS = {pair: type(pair[1], (Inert,), {}) for pair in _CLASSES}

_WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")


def _holds(path: Path) -> bool:
    return (path / _DIRECTORY).is_file() and any(path.glob("*.distcp")) and not is_megatron_core(path)


def detect(path: Path) -> bool:
    """A directory file and data files lie in the folder or one step below."""
    return leads_to(path, _holds)


@attrs.frozen
class _Item:
    """One box: whose it is, where it belongs, and where its bytes are."""

    name: str
    offset: tuple[int, ...]
    path: Path
    start: int
    length: int


def read(path: Path, options: ConvertOptions) -> Model:
    """The weights among everything that was saved."""
    step = step_folder(path, options.tag, "latest", _holds)
    file = step / _DIRECTORY
    metadata = _fields(unpickle.load(file.read_bytes(), str(file), dict(_RECORDS)), file)
    shapes = _shapes(metadata, file)
    names = _weights(metadata, list(shapes))
    model = Model({}, step=step_number(step.name))
    boxes: dict[str, list[Box]] = {}
    for item in _items(metadata, step, file):
        if item.name in names:
            boxes.setdefault(item.name, []).append(_box(item, model))
    for saved, name in names.items():
        if saved not in boxes:
            raise IntegrityError.of("checkpoint-incomplete", f"{saved} has no data in {step}", where=saved)
        model.tensors[name] = assemble(name, boxes[saved], shapes[saved])
    ignored_count = len(metadata["state_dict_metadata"]) - len(names)
    if ignored_count:
        model.ignored["everything else"] = f"{ignored_count} entries that are not weights"
    describe(model, step, options)
    return model


def _fields(value: Any, file: Path) -> dict[str, Any]:
    if isinstance(value, Inert) and isinstance(value.state, dict):
        return value.state
    raise IntegrityError.of(
        "checkpoint-damaged", f"{file} holds a record that cannot be read", where=str(file)
    )


def _shapes(metadata: dict[str, Any], file: Path) -> dict[str, tuple[int, ...]]:
    tensors = {}
    for name, entry in metadata.get("state_dict_metadata", {}).items():
        fields = entry.state if isinstance(entry, Inert) and isinstance(entry.state, dict) else {}
        if "chunks" in fields:
            tensors[str(name)] = tuple(fields["size"])
    if not tensors:
        raise IntegrityError.of("checkpoint-damaged", f"{file} lists no tensors", where=str(file))
    return tensors


def _weights(metadata: dict[str, Any], tensors: list[str]) -> dict[str, str]:
    """Saved name -> the model's own name, for what is a weight."""
    planned = {str(k): tuple(map(str, v)) for k, v in (metadata.get("planner_data") or {}).items()}
    paths = {saved: _unwrapped(planned.get(saved) or (saved,)) for saved in tensors}
    out = roots.weights(paths)
    for saved, name in out.items():
        if name.endswith("flat_param"):
            message = f"{saved} is a flattened parameter, whose parts no file names"
            raise ConfigError.of(
                "checkpoint-unsupported",
                message,
                where=saved,
                hint="fsdp_state_dict_type: SHARDED_STATE_DICT",
            )
    if len(set(out.values())) != len(out):
        first = next(iter(out))
        raise IntegrityError.of("checkpoint-stale", "two saved tensors have the same name", where=first)
    return out


def _unwrapped(path: tuple[str, ...]) -> tuple[str, ...]:
    """Names without what torch's wrappers put into them."""
    name = path[-1]
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return (*path[:-1], name)


def _items(metadata: dict[str, Any], step: Path, file: Path) -> list[_Item]:
    out = []
    for index, info in metadata.get("storage_data", {}).items():
        key, where = _fields(index, file), _fields(info, file)
        if where.get("transform_descriptors"):
            raise ConfigError.of(
                "checkpoint-unsupported", f"{key['fqn']} is stored compressed", where=str(key["fqn"])
            )
        offset = tuple(key.get("offset") or ())
        path = step / inside(str(where["relative_path"]), file)
        if not path.is_file():
            raise IntegrityError.of("checkpoint-incomplete", f"{path} is missing", where=str(path))
        out.append(_Item(str(key["fqn"]), offset, path, int(where["offset"]), int(where["length"])))
    return out


def _box(item: _Item, model: Model) -> Box:
    archive = torchzip.open_archive(item.path, offset=item.start, length=item.length)
    if not isinstance(archive.value, TensorRef):
        raise IntegrityError.of(
            "checkpoint-damaged", f"{item.name} is not a tensor in {item.path}", where=item.name
        )
    model.crcs.setdefault(item.path, []).extend(archive.crcs)
    tensor = archive.tensor(item.name, archive.value)
    return Box(item.offset or (0,) * len(tensor.shape), tensor)
