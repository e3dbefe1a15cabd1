"""Sharded safetensors: one file per rank, each tensor with its offset in the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain.plugin import IntegrityError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.containers import safetensors
from hpctrain_plugins.checkpoints.formats.grids import Box, assemble, describe
from hpctrain_plugins.checkpoints.formats.hf.check import check
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model

HPCTRAIN_API = 1

_GLOB = "shard-*-model-*.safetensors"
_INFO = "DCP_SHARDING_INFO"


def _holds(path: Path) -> bool:
    return any(path.glob(_GLOB))


def detect(path: Path) -> bool:
    """Files of ranks lie in the folder, in its `model`, or one step below."""
    return leads_to(path, _holds)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step."""
    step = step_folder(path, options.tag, "latest", _holds)
    boxes: dict[str, list[Box]] = {}
    for file in sorted(step.glob(_GLOB)):
        header = safetensors.read_header(file)
        info = _info(header.metadata, file)
        for name, tensor in header.tensors.items():
            offset = tuple(int(n) for n in info.get(name, {}).get("saved_offsets", ()))
            boxes.setdefault(name, []).append(Box(offset or (0,) * len(tensor.shape), tensor))
    model = Model({}, step=step_number(step.name))
    for name, parts in boxes.items():
        shape = tuple(
            max(b.offset[i] + b.tensor.shape[i] for b in parts) for i in range(len(parts[0].tensor.shape))
        )
        model.tensors[name] = assemble(name, parts, shape)
    describe(model, step, options)
    if not check(model, step):
        count = len({file.name.split("-model-")[0] for file in step.glob(_GLOB)})
        message = f"no file of {step} says how many ranks wrote it: of {count} or more, a lost last one shows"
        model.warnings.append(
            f"{message} only in the shapes, which no configuration here says; --config FILE"
        )
    return model


def _info(metadata: dict[str, str], file: Path) -> dict[str, Any]:
    try:
        info = documents.parse(metadata.get(_INFO, "{}"))
    except ValueError as error:
        raise IntegrityError.of(
            "checkpoint-damaged", f"{file} does not describe its parts", where=str(file)
        ) from error
    return info if isinstance(info, dict) else {}
