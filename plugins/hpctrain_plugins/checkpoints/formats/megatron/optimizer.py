"""Megatron's optimizer: the layout it was saved in, and its numbers of each weight where that names them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers.distcp import Directory
from hpctrain_plugins.checkpoints.containers.unpickle import Inert
from hpctrain_plugins.checkpoints.formats.grids import Box, assemble, boxes_of
from hpctrain_plugins.checkpoints.tensors import Model

NAMED = "fully_reshardable"
"""The layout whose keys are the model's."""
FLAT = "fully_sharded_model_space"
"""The same keys, until 0.14: each weight cut into the shards of its ranks, which lie there as lines."""
LAYOUT = "distrib_optim_sharding_type"
"""What Megatron-Core calls the layout in a checkpoint."""

_STATE = re.compile(r"(?:chained_\d+\.)?optimizer\.")
_MASTER = re.compile(r"(?:chained_\d+\.)?optimizer\.state\.(?:fp32_)?param\.(?P<key>.+)$")
_OPTION = "--dist-ckpt-optim-fully-reshardable"


def is_of_model(key: str) -> bool:
    """Whether a key is a weight's."""
    return not _STATE.match(key)


def layout_of(directory: Directory, common: Mapping[str, Any]) -> str:
    """What Megatron-Core calls the layout of the optimizer; empty where none was saved."""
    states = [key for key in directory.shapes if not is_of_model(key)]
    if not states:
        return ""
    if any(key in directory.true_shapes for key in states):
        return FLAT
    noted = _table(common.get("content_metadata")).get(LAYOUT)
    earlier = _table(common.get("optimizer")).get("param_state_sharding_type")  # before 0.13
    return str(noted or earlier or "unknown")


def _table(value: Any) -> dict[str, Any]:
    state = value.state if isinstance(value, Inert) else value
    return state if isinstance(state, dict) else {}


def words(layout: str) -> str:
    """What of the optimizer a reader should know, behind how much was left out."""
    return f"; the optimizer's layout is {layout}" if layout else ""


def check_named(layout: str, where: str) -> None:
    """ConfigError where no optimizer was saved, or in a layout without names of weights."""
    if layout in (NAMED, FLAT):
        return
    message = "it was saved without an optimizer"
    if layout:
        message = f"its optimizer's layout is {layout}, which does not name the weights by themselves"
    hint = f"leave {where} out; a run saves what it needs with {_OPTION}"
    raise ConfigError.of("checkpoint-unsupported", message, where=where, hint=hint)


def masters(directory: Directory, layout: str, keys: set[str]) -> dict[str, str]:
    """Key of a weight -> key of its fp32 copy; ConfigError where the layout has no names."""
    check_named(layout, "--masters")
    master_keys = {match["key"]: key for key in directory.shapes if (match := _MASTER.match(key))}
    lacking = sorted(keys - set(master_keys))
    if lacking:
        message = f"the optimizer holds no fp32 copy of {lacking[0]}"
        raise ConfigError.of("checkpoint-unsupported", message, where=lacking[0], hint="leave --masters out")
    return {key: master_keys[key] for key in keys}


def shape_of(directory: Directory, key: str) -> tuple[int, ...]:
    """The shape that a tensor has, whichever it was saved in."""
    return directory.true_shapes.get(key, directory.shapes[key])


def shards_of(directory: Directory, key: str, model: Model) -> list[Box]:
    """The boxes of a tensor in its true shape; the model learns their checksums.

    Flat ones have an axis for each of the tensor's, which counts shards along it, and a last one for the
    numbers of a shard, of which a box may hold a part.
    """
    boxes = boxes_of(directory, key, model)
    if key not in directory.true_shapes:
        return boxes
    shape, grid = directory.true_shapes[key], directory.shapes[key][:-1]
    if len(grid) != len(shape) or any(n < 1 or length % n for n, length in zip(grid, shape, strict=True)):
        message = f"{key} is saved as {list(directory.shapes[key])}, which is no grid over {list(shape)}"
        raise IntegrityError.of("checkpoint-shape", message, where=key)
    shard = tuple(length // n for n, length in zip(grid, shape, strict=True))
    parts: defaultdict[tuple[int, ...], list[Box]] = defaultdict(list)
    for box in boxes:
        line = box.tensor.shaped(box.tensor.numel)
        parts[box.offset[:-1]].append(Box(box.offset[-1:], line))
    return [
        Box(
            tuple(at * length for at, length in zip(place, shard, strict=True)),
            assemble(key, lines, (math.prod(shard),)).shaped(*shard),
        )
        for place, lines in parts.items()
    ]
