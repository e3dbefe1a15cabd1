"""All that a training of Megatron-Core goes on from: `convert --to megatron --optimizer`.

Up to 0.14 it saved the optimizer cut into the flat shards of its ranks (`fully_sharded_model_space`), which
0.16 refuses to load. Here they become tensors under the name and in the shape of their weight
(`fully_reshardable`), which any tensor, pipeline and data parallelism loads. Keys stay as they are, so every
model can be rewritten, of known families or not, and no number changes.
https://github.com/NVIDIA/Megatron-LM/blob/core_r0.16.0/megatron/core/optimizer/distrib_optimizer.py
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.containers import distcp, pickle_edit, torchzip, torchzip_write
from hpctrain_plugins.checkpoints.containers.distcp import Directory, Item
from hpctrain_plugins.checkpoints.containers.distcp_write import Stored, plan_files
from hpctrain_plugins.checkpoints.containers.torchzip import Archive, pickle_of
from hpctrain_plugins.checkpoints.formats.grids import Box, assemble
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.megatron import optimizer
from hpctrain_plugins.checkpoints.formats.megatron.common import COMMON, INERT
from hpctrain_plugins.checkpoints.formats.megatron.steps import TRACKER
from hpctrain_plugins.checkpoints.formats.steps import step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model

NOTE = "metadata.json"

_STATE = re.compile(r"(?P<head>(?:chained_\d+\.)?optimizer\.state\.)(?P<moment>\w+)\.(?P<key>.+)$")
_MASTERS = {"fp32_param": "param"}
"""What the older layout called the fp32 weights."""


@attrs.define(kw_only=True)
class Training(Model):
    """Tensors by the keys that they are written under, each with the boxes that it was saved in."""

    saved: Path
    """The folder of the step."""
    boxes: dict[str, list[Box]]
    objects: dict[str, Item]
    layout: str
    """Megatron-Core's name of the layout that the optimizer was in."""

    @property
    def parameters(self) -> int:
        """How many weights the model has; the optimizer holds several numbers of each."""
        return sum(math.prod(t.shape) for key, t in self.tensors.items() if optimizer.is_of_model(key))


def read(step: Path, directory: Directory, common: dict[str, Any], options: ConvertOptions) -> Training:
    """Everything that lies in a step; ConfigError where its optimizer's layout names no weights."""
    layout = optimizer.layout_of(directory, common)
    optimizer.check_named(layout, "--optimizer")
    model = Training({}, saved=step, boxes={}, objects=_objects(directory), layout=layout)
    model.step, model.shapes = step_number(step.name), "checkpoint"
    archive = torchzip.open_archive(step / COMMON, inert=INERT)
    model.crcs[archive.path] = archive.crcs
    for saved_key in directory.shapes:
        key = _key(saved_key)
        model.boxes[key] = optimizer.shards_of(directory, saved_key, model)
        model.tensors[key] = assemble(key, model.boxes[key], optimizer.shape_of(directory, saved_key))
    _check_shapes(model)
    model.files = beside(options.tokenizer or step.parent / "tokenizer")
    model.decisions["optimizer_layout"] = layout
    if layout == optimizer.NAMED:
        message = f"the optimizer was {layout} already: Megatron-Core loads it at any size as it is"
        model.warnings.append(message)
    return model


def _key(saved_key: str) -> str:
    """What the newer layout calls it."""
    match = _STATE.match(saved_key)
    if match is None:
        if not optimizer.is_of_model(saved_key):
            message = f"{saved_key} is no state of a weight"
            raise ConfigError.of("checkpoint-unsupported", message, where=saved_key)
        return saved_key
    return f"{match['head']}{_MASTERS.get(match['moment'], match['moment'])}.{match['key']}"


def _objects(directory: Directory) -> dict[str, Item]:
    """What is no tensor: the states of random numbers, and of modules."""
    return {key: items[0] for key, items in directory.items.items() if key not in directory.shapes}


def _check_shapes(model: Training) -> None:
    """Each state belongs to a weight and has its shape, and each weight has the same states."""
    moments: defaultdict[str, set[str]] = defaultdict(set)
    for key, tensor in model.tensors.items():
        match = _STATE.match(key)
        if match is None:
            continue
        weight = model.tensors.get(match["key"])
        if weight is None:
            message = f"{key} is the state of {match['key']}, which is not there"
            raise IntegrityError.of("checkpoint-incomplete", message, where=key)
        if weight.shape != tensor.shape:
            message = f"{key} has shape {list(tensor.shape)}, its weight {list(weight.shape)}"
            raise IntegrityError.of("checkpoint-shape", message, where=key)
        moments[match["key"]].add(match["moment"])
    names = set().union(*moments.values())
    for key, present in moments.items():
        for name in sorted(names - present):
            message = f"the optimizer holds no {name} of {key}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=key)


def _common_text(common: Archive, model: Training) -> bytes:
    """The pickle of what ranks do not share, with the other layout."""
    where = str(common.path)
    text = pickle_edit.with_text(pickle_of(common.path), model.layout, optimizer.NAMED, where)
    if "content_metadata" in common.value:
        return text
    is_prefixed = any(key.startswith("chained_") for key in model.tensors)
    noted = {optimizer.LAYOUT: optimizer.NAMED, "chained_optim_avoid_prefix": not is_prefixed}
    return pickle_edit.with_entry(text, "content_metadata", noted, where)  # which came with 0.13


def plan(model: Training, options: ConvertOptions) -> Output:
    """The same step, its optimizer by names; its tracker says it is the latest."""
    step = model.saved.name
    stored = {
        key: Stored(tensor.shape, tensor.dtype, [(box.offset, box.tensor) for box in model.boxes[key]])
        for key, tensor in model.tensors.items()
    }
    files, directory = plan_files(stored, (), {}, options.shard_bytes, model.objects)
    common = torchzip.open_archive(model.saved / COMMON, inert=INERT)
    text = _common_text(common, model)
    output = Output(files=[attrs.evolve(file, name=f"{step}/{file.name}") for file in files])
    output.files.append(torchzip_write.plan_copy(f"{step}/{COMMON}", common, text))
    output.texts = {
        f"{step}/{distcp.DIRECTORY}": directory,
        f"{step}/{NOTE}": documents.whole(model.saved / NOTE),
        TRACKER: (step if model.step is None else str(model.step)).encode(),
    }
    output.copies = {f"tokenizer/{name}": path for name, path in model.files.items()}
    output.decisions["optimizer_layout_written"] = optimizer.NAMED
    return output
