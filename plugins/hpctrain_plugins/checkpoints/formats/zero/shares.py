"""Stage 3 for a number of ranks: each parameter is cut into equal shares, and these lie in sub-groups.

How many parameters a sub-group takes follows from the length of the shares, and so from the ranks
(`_create_fp16_sub_groups`): https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/runtime/zero/stage3.py
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved, plan_file
from hpctrain_plugins.checkpoints.containers.unpickle import Size
from hpctrain_plugins.checkpoints.formats.zero.optimizer import Group, State, stored
from hpctrain_plugins.checkpoints.formats.zero_files import BASE_OPTIMIZER, MASTERS, number_of
from hpctrain_plugins.checkpoints.output import OutFile
from hpctrain_plugins.checkpoints.tensors import Tensor, concat, zeros

_SUB_GROUP = 1_000_000_000
"""DeepSpeed's own sub_group_size, where the run says none."""


def optimizer_of(model: State, rank: int, ranks: int) -> dict[str, Any]:
    """What the optimizer holds on one rank."""
    stage = model.source.stage
    masters: list[Saved] = []
    states: dict[int, dict[str, Any]] = {}
    settings = []
    for group in model.groups:
        first = len(masters)
        for names in _sub_groups(model, group, ranks):
            vectors = {m: _vector(model, names, m, rank, ranks) for m in ("", *model.moments)}
            saved = {m: Saved(vector, vector.dtype) for m, vector in vectors.items()}
            masters.append(saved.pop(""))
            states[len(states)] = {**group.once, **saved}
        settings.append({**group.settings, "params": list(range(first, len(masters)))})
    return {
        **model.optimizer,
        BASE_OPTIMIZER[stage]: {"state": states, "param_groups": settings},
        MASTERS[stage]: masters,
        "partition_count": ranks,
    }


def model_files(model: State, ranks: int) -> list[OutFile]:
    """One for each rank: what is trained is described there, and what is frozen also lies there in shares."""
    first = model.source.model[0]
    value = stored(first, first.value)
    value["dp_world_size"] = ranks
    value["param_shapes"] = [
        OrderedDict((name, Size(group.shapes[name])) for name in names)
        for group in model.groups
        for names in _sub_groups(model, group, ranks)
    ]
    out = []
    for rank in range(ranks):
        if value.get("frozen_param_fragments"):
            shares = {n: _share(t, rank, ranks) for n, t in model.source.frozen().items()}
            fragments = OrderedDict((name, Saved(share, share.dtype)) for name, share in shares.items())
            value = {**value, "frozen_param_fragments": fragments}
        out.append(plan_file(f"{model.tag}/zero_pp_rank_{rank}_mp_rank_00_model_states.pt", value))
    return out


def check(model: State, ranks: int) -> None:
    """Refuse a checkpoint whose own sub-groups are not those of the rule, for then it would not be read."""
    ours = [names for group in model.groups for names in _sub_groups(model, group, ranks)]
    theirs = [list(shapes) for shapes in model.source.shapes]
    if ours != theirs:
        message = (
            f"{model.source.step} has {len(theirs)} sub-groups of parameters where sub_group_size "
            f"{_sub_group_size(model)} makes {len(ours)} on {ranks} ranks"
        )
        raise ConfigError.of("checkpoint-unsupported", message, where="sub_group_size")


def _sub_group_size(model: State) -> int:
    zero = (model.source.metadata.get("ds_config") or {}).get("zero_optimization") or {}
    size = zero.get("sub_group_size", _SUB_GROUP)
    return _SUB_GROUP if isinstance(size, str) else int(size)


def _sub_groups(model: State, group: Group, ranks: int) -> list[list[str]]:
    size, out, length = _sub_group_size(model), [], 0
    shares = {name: -(-math.prod(shape) // ranks) for name, shape in group.shapes.items()}
    if size >= sum(shares.values()):
        return [list(shares)]
    current: list[str] = []
    for name, share in shares.items():
        current.append(name)
        length += share
        if length >= size:
            out.append(current)
            current, length = [], 0
    return [*out, current] if current else out


def _vector(model: State, names: list[str], moment: str, rank: int, ranks: int) -> Tensor:
    return concat([_share(model.tensors[number_of(name, moment)], rank, ranks) for name in names])


def _share(tensor: Tensor, rank: int, ranks: int) -> Tensor:
    """One rank's numbers; those behind the last one are padding, of which nothing is ever read."""
    length = -(-tensor.numel // ranks)
    start, stop = (min(tensor.numel, at * length) for at in (rank, rank + 1))
    part = tensor.shaped(tensor.numel).part(0, start, stop)
    spare = zeros(tensor.name, tensor.dtype, (length - part.numel,))
    return concat([part, spare]) if spare.numel else part
