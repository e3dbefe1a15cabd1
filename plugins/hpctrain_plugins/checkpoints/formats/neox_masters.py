"""The optimizer's full-precision weights of a GPT-NeoX run, in place of the rounded ones.

DeepSpeed counts model-parallel ranks over pipeline stages first: rank = stage * tp + tp rank. A
stage names its parameters by layer; weights that two stages share go by the name of their tie.
"""

from __future__ import annotations

import re
from pathlib import Path

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.formats import zero_files
from hpctrain_plugins.checkpoints.formats.neox_shards import Shards
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_LAYER = re.compile(r"(?:module\.)?(?:sequential\.)?(\d+)\.(.+)$")
_TIED = re.compile(r"(?:module\.)?tied_modules\.\w+\.(.+)$")


def put(step: Path, shards: Shards, model: Model) -> None:
    """Replace every tensor of `shards` by its master; none may be without one."""
    found: dict[tuple[int, str, int], list[Tensor]] = {}
    partitions = zero_files.read(step)
    if len(partitions) % shards.tp:
        count = len(partitions)
        said = f"{step} has optimizer files of {count} model-parallel ranks, not of {shards.tp}"
        raise IntegrityError.of("checkpoint-stale", said, where=str(step))
    for number, partition in enumerate(partitions):
        for archive in (*partition.optim, *partition.model):
            model.crcs[archive.path] = archive.crcs
        for name, tensor in partition.trainable().items():
            layer, own = _place(name)
            found.setdefault((layer, own, number % shards.tp), []).append(tensor)
    for (layer, name), ranks in shards.tensors.items():
        shards.tensors[layer, name] = [
            _one(found.pop((layer, name, rank), []), held, model) for rank, held in enumerate(ranks)
        ]
    for layer, name, rank in found:
        said = f"the optimizer of rank {rank} holds {layer}.{name}, which no weights file has"
        raise IntegrityError.of("checkpoint-unsupported", said, where=f"{layer}.{name}")
    model.decisions["masters"] = "the optimizer's fp32 weights"


def _place(name: str) -> tuple[int, str]:
    tied = _TIED.match(name)
    if tied:
        return 0, tied[1]
    found = _LAYER.match(name)
    if not found:
        raise IntegrityError.of("checkpoint-unsupported", f"{name} belongs to no layer", where=name)
    return int(found[1]), found[2]


def _one(masters: list[Tensor], held: Tensor, model: Model) -> Tensor:
    """The master of one shard; stages that share it must agree."""
    if not masters:
        raise IntegrityError.of(
            "checkpoint-incomplete", f"the optimizer holds no {held.name}", where=held.name
        )
    first = masters[0].shaped(*held.shape).named(held.name)
    model.replicas += [(first, other.shaped(*held.shape)) for other in masters[1:]]
    return first
