"""The optimizer's full-precision weights of a GPT-NeoX run, in place of the rounded ones.

DeepSpeed counts model-parallel ranks over pipeline stages first: rank = stage * tp + tp rank. A
stage names its parameters by layer; weights that two stages share go by the name of their tie.
"""

from __future__ import annotations

import re
from pathlib import Path

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.formats import zero_files
from hpctrain_plugins.checkpoints.formats.neox.shards import Shards
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_LAYER = re.compile(r"(?:module\.)?(?:sequential\.)?(\d+)\.(.+)$")
_TIED = re.compile(r"(?:module\.)?tied_modules\.\w+\.(.+)$")


def put(step: Path, shards: Shards, model: Model) -> None:
    """Replace every tensor of `shards` by its master; none may be without one."""
    masters: dict[tuple[int, str, int], list[Tensor]] = {}
    partitions = zero_files.read(step)
    if len(partitions) % shards.tp:
        count = len(partitions)
        message = f"{step} has optimizer files of {count} model-parallel ranks, not of {shards.tp}"
        raise IntegrityError.of("checkpoint-stale", message, where=str(step))
    for number, partition in enumerate(partitions):
        for archive in (*partition.optim, *partition.model):
            model.crcs[archive.path] = archive.crcs
        for name, tensor in partition.parameters().items():
            layer, tensor_name = _place(name)
            masters.setdefault((layer, tensor_name, number % shards.tp), []).append(tensor)
    for (layer, name), ranks in shards.tensors.items():
        shards.tensors[layer, name] = [
            _master_of(masters.pop((layer, name, rank), []), shard, model) for rank, shard in enumerate(ranks)
        ]
    for layer, name, rank in masters:
        message = f"the optimizer of rank {rank} holds {layer}.{name}, which no weights file has"
        raise IntegrityError.of("checkpoint-unsupported", message, where=f"{layer}.{name}")
    model.decisions["masters"] = "the optimizer's fp32 weights"


def _place(name: str) -> tuple[int, str]:
    tied = _TIED.match(name)
    if tied:
        return 0, tied[1]
    match = _LAYER.match(name)
    if not match:
        raise IntegrityError.of("checkpoint-unsupported", f"{name} belongs to no layer", where=name)
    return int(match[1]), match[2]


def _master_of(masters: list[Tensor], shard: Tensor, model: Model) -> Tensor:
    """The master of one shard; stages that share it must agree."""
    if not masters:
        raise IntegrityError.of(
            "checkpoint-incomplete", f"the optimizer holds no {shard.name}", where=shard.name
        )
    first = masters[0].shaped(*shard.shape).named(shard.name)
    model.replicas += [(first, replica.shaped(*shard.shape)) for replica in masters[1:]]
    return first
