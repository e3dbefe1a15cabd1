"""Hugging Face folders: safetensors in shards, or the older `.bin`, with config and tokenizer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.containers import safetensors, torchzip
from hpctrain_plugins.checkpoints.copying.compute import target_dtype
from hpctrain_plugins.checkpoints.copying.publishing import inside
from hpctrain_plugins.checkpoints.formats.hf.beside import beside, left_behind, lost
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import FLOATS, ITEMSIZE, Model, Tensor

HPCTRAIN_API = 1
CHOICES = ("shard_bytes",)

_STEMS = (("model.safetensors", False), ("pytorch_model.bin", True))

_OWN_WORDS = (
    *("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor"),
    *("dtype", "torch_dtype"),
)
"""Of these every format speaks itself, perhaps by another name."""

_TORCH_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def detect(path: Path) -> bool:
    """A weights file, an index or shards lie in the folder."""
    files = any((path / f"{stem}{tail}").is_file() for stem, _ in _STEMS for tail in ("", ".index.json"))
    return files or any(_shard_count(path, stem) for stem, _ in _STEMS)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model in a folder."""
    model = Model({}, config=config_of(path, options), files=beside(path))
    if options.tokenizer:
        model.files.update(beside(options.tokenizer))
    for stem, pickled in _STEMS:
        for name in _weight_files(path, stem):
            _add(model, path / name, pickled)
        if model.tensors:
            _name_files(model, path)
            _check_index(model, path, stem)
            return model
    raise IntegrityError.of("checkpoint-incomplete", f"{path} holds no weights", where=str(path))


def _name_files(model: Model, path: Path) -> None:
    """Say what of the folder does not go along, and what it lacks itself."""
    used = {origin.file.name for tensor in model.tensors.values() for origin in tensor.origins}
    left = [name for name in left_behind(path) if name not in used]
    if left:
        model.decisions["files_left"] = left
    for name in lost(path):
        model.warnings.append(f"{path} names the code {name} in an auto_map and does not hold it")


def _weight_files(path: Path, stem: str) -> list[str]:
    index = path / f"{stem}.index.json"
    if (path / stem).is_file():
        return [stem]
    names = _listed(index) if index.is_file() else _numbered(path, stem)
    for name in names:
        if not (path / name).is_file():
            raise IntegrityError.of(
                "checkpoint-incomplete", f"{path / name} is missing", where=str(path / name)
            )
    return names


def _listed(index: Path) -> list[str]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict):
        raise IntegrityError.of("checkpoint-damaged", f"{index} has no weight_map", where=str(index))
    return sorted({inside(str(name), index) for name in weight_map.values()})


def _numbered(path: Path, stem: str) -> list[str]:
    """All shards, by the number that their own names say; an index would list no others."""
    count = _shard_count(path, stem)
    start, end = stem.split(".")
    return [f"{start}-{number:05d}-of-{count:05d}.{end}" for number in range(1, count + 1)]


def _shard_count(path: Path, stem: str) -> int:
    """How many shards there should be, as the first of them says; 0 where there is none."""
    start, end = stem.split(".")
    shards = sorted(path.glob(f"{start}-?????-of-?????.{end}")) if path.is_dir() else []
    count = shards[0].stem[-5:] if shards else ""
    return int(count) if count.isdigit() else 0


def _add(model: Model, file: Path, pickled: bool) -> None:
    if pickled:
        archive = torchzip.open_archive(file)
        tensors = archive.tensors(archive.value)
        model.crcs[file] = archive.crcs
    else:
        tensors = safetensors.read_header(file).tensors
    for name, tensor in tensors.items():
        if name in model.tensors:
            raise IntegrityError.of(
                "checkpoint-stale", f"{name} appears in two files, one is {file}", where=name
            )
        model.tensors[name] = tensor


def _check_index(model: Model, path: Path, stem: str) -> None:
    index = path / f"{stem}.index.json"
    if not index.is_file():
        if not (path / stem).is_file():
            model.warnings.append(f"{index} is lost; the names of the shards say that all are here")
        return
    listed = set(read_json(index)["weight_map"])
    for name in sorted(listed ^ set(model.tensors)):
        complaint = "is in the index but in no file" if name in listed else "is not in the index"
        raise IntegrityError.of("checkpoint-damaged", f"{name} {complaint}", where=str(index))


def read_config(path: Path) -> dict[str, Any]:
    """`config.json` of a folder, or the file itself; empty when there is none."""
    file = path / "config.json" if path.is_dir() else path
    return read_json(file) if file.is_file() else {}


def config_of(home: Path, options: ConvertOptions) -> dict[str, Any]:
    """The configuration that the options name, or else the folder's own."""
    config = read_config(options.config or home)
    if options.config and not config:
        message = f"{options.config} holds no config.json"
        raise ConfigError.of("checkpoint-config", message, where=str(options.config), hint="--config FILE")
    return config


def restored(config: dict[str, Any], recorded: Any) -> dict[str, Any]:
    """What our own record still knows of the configuration, and the format that was read has no word for."""
    if not isinstance(recorded, dict):
        return config
    return {**config, **{k: v for k, v in recorded.items() if k not in config and k not in _OWN_WORDS}}


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        document = documents.read(file)
    except (OSError, ValueError) as error:
        raise IntegrityError.of(
            "checkpoint-damaged", f"{file} cannot be read ({error})", where=str(file)
        ) from error
    if not isinstance(document, dict):
        raise IntegrityError.of("checkpoint-damaged", f"{file} is not a JSON object", where=str(file))
    return document


def plan(model: Model, options: ConvertOptions) -> Output:
    """Shards in the order of the tensors, an index when there are several, config and tokenizer."""
    dtype = options.target_dtype
    shards = _shards([t.named(n) for n, t in model.tensors.items()], dtype, options.shard_bytes)
    output = Output(copies=dict(model.files))
    weight_map, total = {}, 0
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        name = "model.safetensors" if len(shards) == 1 else name
        rows = [(t.name, t, target_dtype(t, dtype)) for t in tensors]
        output.files.append(safetensors.plan_file(name, rows, {"format": "pt"}))
        weight_map.update({t.name: name for t in tensors})
        total += sum(p.size for p in output.files[-1].parts)
    if len(shards) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        output.texts["model.safetensors.index.json"] = _json(index)
    if model.config:
        output.texts["config.json"] = _json(config_with_dtype(model, dtype))
    else:
        model.warnings.append("the checkpoint holds no configuration: these are weights alone; --config FILE")
    if model.config and not set(model.files) - {"generation_config.json"}:
        model.warnings.append("the checkpoint has no tokenizer; --tokenizer FOLDER")
    return output


def _shards(tensors: list[Tensor], dtype: str, limit: int) -> list[list[Tensor]]:
    shards: list[list[Tensor]] = [[]]
    room = limit
    for tensor in tensors:
        size = tensor.numel * ITEMSIZE[target_dtype(tensor, dtype)]
        if size > room and shards[-1]:
            shards.append([])
            room = limit
        shards[-1].append(tensor)
        room -= size
    return shards


def config_with_dtype(model: Model, dtype: str) -> dict[str, Any]:
    """The configuration with the type of the weights, in the key both library generations read."""
    count: Counter[str] = Counter()
    for tensor in model.tensors.values():
        if tensor.dtype in FLOATS:
            count[target_dtype(tensor, dtype)] += tensor.numel
    if not count:
        return model.config
    config = {k: v for k, v in model.config.items() if k != "dtype"}
    return {**config, "torch_dtype": _TORCH_NAMES[count.most_common(1)[0][0]]}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=False) + "\n").encode()
