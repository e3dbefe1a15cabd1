"""ZeRO stages 1 and 2 with all that the optimizer holds, for another number of ranks: `convert --ranks`.

DeepSpeed itself refuses to load them there. Each group of the optimizer is one long vector that is cut
into equal slices; the slices change, and nothing in them.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip_write
from hpctrain_plugins.checkpoints.containers.pickle_edit import with_number
from hpctrain_plugins.checkpoints.containers.torchzip import Archive, pickle_of
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved
from hpctrain_plugins.checkpoints.containers.unpickle import TensorRef, object_like
from hpctrain_plugins.checkpoints.formats.steps import step_number
from hpctrain_plugins.checkpoints.formats.zero_files import Partition
from hpctrain_plugins.checkpoints.layout import Layout, OutFile
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat, zeros

CHOICES = ()

_MASTERS = "single_partition_of_fp32_groups"
_FRAGMENT = ("deepspeed.utils.tensor_fragment", "fragment_address")
_RESHARDED_AT_LOAD = ("dcp", "hf-sharded")
_OF_A_RANK = ("rng_state",)
"""Beginnings of files that each rank has for itself, and that mean nothing on other numbers of ranks."""


@attrs.define
class State(Model):
    """The optimizer's numbers of each parameter, as tensors called `NAME` and `NAME.KEY`."""

    home: Path = attrs.field(kw_only=True)
    """What was to be read: the folder of a step, or the one above."""
    partition: Partition = attrs.field(kw_only=True)

    @property
    def parameters(self) -> int:
        """How many weights the model has; the optimizer holds several numbers of each."""
        return sum(math.prod(shape) for group in self.partition.shapes for shape in group.values())


def check(source_format: str, target_format: str, options: ConvertOptions) -> None:
    """Refuse what needs no other ranks, or has none."""
    if source_format in _RESHARDED_AT_LOAD:
        message = "torch's distributed checkpoints are cut for the ranks that load them, when they load them"
        raise ConfigError.of("usage", message, where="--ranks", hint="resume from it as it is")
    if source_format != "deepspeed-zero":
        message = f"{source_format} has no optimizer of ranks; --ranks is for checkpoints of DeepSpeed's ZeRO"
        raise ConfigError.of("usage", message, where="--ranks", hint="leave --ranks out")
    if target_format != source_format or options.dtype != "keep":
        message = "--ranks writes a checkpoint of ZeRO as it is, in its own format and types"
        raise ConfigError.of("usage", message, where="--ranks", hint="leave --to and --dtype out")


def state(home: Path, partition: Partition) -> State:
    """Every number that the optimizer holds, by parameter."""
    _check_supported(partition)
    step = partition.step
    model = State({}, home=home, partition=partition, shapes="checkpoint")
    model.step = step_number(step.name)
    model.crcs = {a.path: a.crcs for a in (*partition.optim, *partition.model)}
    model.decisions = {"zero_stage": partition.stage, "data_parallel_ranks": len(partition.optim)}
    for group, shapes in enumerate(partition.shapes):
        for key in ("", *_moments(partition, group)):
            vector, at = _vector(partition, group, key), 0
            for name, shape in shapes.items():
                full = f"{name}.{key}" if key else name
                size = math.prod(shape)
                if at + size > vector.numel:
                    message = f"{full} extends beyond the end of its group"
                    raise IntegrityError.of("checkpoint-shape", message, where=full)
                model.tensors[full] = vector.part(0, at, at + size).shaped(*shape).named(full)
                at += size
            unit = 2 * len(partition.optim)
            if -(-at // unit) != -(-vector.numel // unit):
                message = f"group {group} of {step} holds {vector.numel} numbers, its shapes need {at}"
                raise IntegrityError.of("checkpoint-shape", message, where=str(step))
    model.replicas = list(_replicas(partition))
    return model


def _check_supported(partition: Partition) -> None:
    values = [archive.value["optimizer_state_dict"] for archive in partition.optim]
    zero = (partition.optim[0].value.get("ds_config") or {}).get("zero_optimization") or {}
    refusals = {
        "stage 3": partition.stage == 3,
        "BF16_Optimizer, which notes no stage": any("zero_stage" not in value for value in values),
        "elastic_checkpoint": any(not isinstance(v.get("base_optimizer_state"), dict) for v in values),
        "parameter_alignment": any(map(any, partition.paddings() or [])),
        "round_robin_gradients": bool(zero.get("round_robin_gradients")),
    }
    for word in (word for word, applies in refusals.items() if applies):
        message = f"{partition.step} was written with {word}, which --ranks does not rewrite"
        hint = "ds_to_universal.py of DeepSpeed, and load_universal in its configuration"
        raise ConfigError.of("checkpoint-unsupported", message, where=word, hint=hint)


def _base(archive: Archive, group: int) -> dict[str, Any]:
    """What the optimizer holds of one group's slice."""
    states = archive.value["optimizer_state_dict"]["base_optimizer_state"]["state"]
    state_of_group: dict[str, Any] = states.get(group, {})
    return state_of_group


def _is_sliced(value: Any) -> bool:
    return isinstance(value, TensorRef) and len(value.shape) == 1 and value.shape[0] > 1


def _moments(partition: Partition, group: int) -> list[str]:
    return [key for key, value in _base(partition.optim[0], group).items() if _is_sliced(value)]


def _vector(partition: Partition, group: int, key: str) -> Tensor:
    """One group's numbers over all ranks, perhaps with padding behind them."""
    parts = []
    for archive in partition.optim:
        masters = archive.value["optimizer_state_dict"][_MASTERS]
        ref = _base(archive, group).get(key) if key else masters[group]
        if not isinstance(ref, TensorRef):
            message = f"{archive.path} has no {key or _MASTERS} of group {group}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=str(archive.path))
        parts.append(archive.tensor(f"{key or 'fp32'}[{group}]", ref))
    return concat(parts)


def _replicas(partition: Partition) -> Any:
    """Numbers that are not cut, as the count of steps, are the same on every rank."""
    first = partition.optim[0]
    for group in range(len(partition.shapes)):
        for key, value in _base(first, group).items():
            if not isinstance(value, TensorRef) or _is_sliced(value):
                continue
            for archive in partition.optim[1:]:
                pair = [a.tensor(f"{key}[{group}]", _base(a, group)[key]) for a in (first, archive)]
                yield pair[0], pair[1]


def plan(model: Model, options: ConvertOptions) -> Layout:
    """The files of all ranks, and what else lies in the folders."""
    if not isinstance(model, State) or options.ranks is None:
        raise ConfigError.of("usage", "ZeRO is written for another number of ranks alone: --ranks N")
    ranks, partition, step = options.ranks, model.partition, model.partition.step
    layout = Layout(decisions={"ranks": ranks})
    prefix = "bf16_" if partition.optim[0].path.name.startswith("bf16_") else ""
    for rank in range(ranks):
        name = f"{step.name}/{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        try:
            layout.files.append(torchzip_write.plan_file(name, _of_rank(model, rank, ranks)))
        except TypeError as error:
            message = f"{step} cannot be rewritten: {error}"
            raise ConfigError.of("checkpoint-unsupported", message, where=str(step)) from error
    layout.files.append(_model_file(step, partition.model[0], ranks))
    rewritten = {archive.path for archive in (*partition.optim, *partition.model)}
    for folder in dict.fromkeys((step, model.home)):
        place = f"{step.name}/" if folder == step else ""
        files = (f for f in sorted(folder.iterdir()) if f.is_file() and f not in rewritten)
        layout.copies |= {
            f"{place}{f.name}": f
            for f in files
            if not f.name.startswith(_OF_A_RANK) and f.name not in ("latest", "conversion.json")
        }
    layout.texts["latest"] = step.name.encode()
    return layout


def _model_file(step: Path, archive: Archive, ranks: int) -> OutFile:
    """The weights as the model holds them, untouched; it notes for how many ranks the others are."""
    text = with_number(pickle_of(archive.path), "dp_world_size", ranks, str(archive.path))
    return torchzip_write.plan_copy(f"{step.name}/{archive.path.name}", archive, text)


def _of_rank(model: State, rank: int, ranks: int) -> dict[str, Any]:
    first = model.partition.optim[0]
    optimizer = _stored(first, first.value["optimizer_state_dict"])
    base = optimizer["base_optimizer_state"]
    masters, paddings, mappings = [], [], []
    for group, shapes in enumerate(model.partition.shapes):
        slices = _Slices(model, list(shapes), rank, ranks)
        masters.append(Saved(slices.of("", padded=False), "F32"))
        paddings.append(slices.padding)
        mappings.append(slices.mapping())
        for key in _moments(model.partition, group):
            moment = slices.of(key, padded=True)
            base["state"][group][key] = Saved(moment, moment.dtype)
    optimizer |= {
        _MASTERS: masters,
        "zero_stage": model.partition.stage,  # a number in place of its own class of numbers
        "group_paddings": paddings,
        "partition_count": [ranks] * len(masters),
        "param_slice_mappings": mappings,
    }
    return {**_stored(first, first.value), "optimizer_state_dict": optimizer}


@attrs.define
class _Slices:
    """One rank's share of a group: its parameters one after the other, in slices of equal length.

    The length of the whole is a multiple of twice the ranks; only the last rank leaves its padding out
    of the weights: https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/runtime/zero/stage_1_and_2.py
    """

    _model: State
    _names: list[str]
    _rank: int
    _ranks: int

    @property
    def total(self) -> int:
        return sum(self._model.tensors[name].numel for name in self._names)

    @property
    def length(self) -> int:
        return -(-self.total // (2 * self._ranks)) * 2

    @property
    def padding(self) -> int:
        last = self._rank == self._ranks - 1
        return self.length * self._ranks - self.total if last else 0

    def of(self, key: str, *, padded: bool) -> Tensor:
        tensors = [self._model.tensors[f"{name}.{key}" if key else name] for name in self._names]
        line = concat([t.shaped(t.numel) for t in tensors])
        spare = zeros(line.name, line.dtype, (self.length * self._ranks - self.total,))
        full = concat([line, spare]) if spare.numel else line
        start = self._rank * self.length
        stop = start + self.length - (0 if padded else min(self.padding, self.length))
        return full.part(0, start, stop)

    def mapping(self) -> Any:
        """Which parameters lie in the slice, and where."""
        out, at, start = OrderedDict(), 0, self._rank * self.length
        for name in self._names:
            end = at + self._model.tensors[name].numel
            low, high = max(at, start), min(end, start + self.length)
            if low < high:
                out[name] = object_like(_FRAGMENT, {"numel": high - low, "start": low - start})
            at = end
        return out


def _stored(archive: Archive, value: Any) -> Any:
    """What a file holds, with its tensors as they are to be written again."""
    if isinstance(value, TensorRef):
        tensor = archive.tensor("a tensor of the optimizer", value)
        return Saved(tensor, tensor.dtype)
    if isinstance(value, dict):
        return type(value)((key, _stored(archive, item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_stored(archive, item) for item in value)
    return value
