"""All that the optimizer of a ZeRO run holds, by parameter: what a training goes on from.

Both forms of such checkpoints are read as this, the files of ranks here and the universal one in its own
module; both are written from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers.torchzip import Archive
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved
from hpctrain_plugins.checkpoints.containers.unpickle import TensorRef
from hpctrain_plugins.checkpoints.formats.steps import step_number
from hpctrain_plugins.checkpoints.formats.zero_files import (
    BASE_OPTIMIZER,
    MASTERS,
    ModelFiles,
    Partition,
    Trained,
)
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_CUT = {*MASTERS.values(), *BASE_OPTIMIZER.values(), "param_groups", "param_slice_mappings"}
"""Entries of an optimizer's file that are written anew; the others are the same on every rank."""

_WRITTEN = ("latest", "latest_universal", "conversion.json", "MANIFEST")
"""Files that speak of the others, and would speak of those before."""
_OF_A_RANK = ("rng_state",)
"""Beginnings of files that each rank has for itself, and that mean nothing on other numbers of ranks."""


@attrs.frozen
class Group:
    """Parameters that the optimizer treats alike."""

    shapes: dict[str, tuple[int, ...]]
    vectors: tuple[int, ...]
    """Which of the source's vectors hold them."""
    settings: dict[str, Any]
    """Its learning rate, weight decay and the like."""
    once: dict[str, Any]
    """What is kept once for all numbers of the group, as the count of steps."""


@attrs.define(kw_only=True)
class State(Model):
    """The optimizer's numbers of each parameter, as tensors called `NAME` and `NAME.MOMENT`."""

    home: Path
    """What was to be read: the folder of a step, or the one above."""
    source: Trained
    groups: list[Group]
    moments: tuple[str, ...]
    optimizer: dict[str, Any]
    """What else the optimizer's files say."""
    beside: dict[str, Any]
    """What lies in those files beside the optimizer."""
    bf16: bool
    """Whether DeepSpeed looks for the files of a training in bf16, which it names apart."""

    def __attrs_post_init__(self) -> None:
        """What is known of every such checkpoint."""
        self.step = step_number(self.tag)
        self.shapes = "checkpoint"
        self.crcs = {archive.path: archive.crcs for archive in self.source.archives}
        self.decisions["zero_stage"] = self.source.stage
        for moment in ("", *self.moments):
            self.tensors |= self.source.parameters(moment)
        if self.source.stage == 3:
            self.tensors |= self.source.frozen()

    @property
    def parameters(self) -> int:
        """How many weights the model has; the optimizer holds several numbers of each."""
        return sum(math.prod(shape) for group in self.groups for shape in group.shapes.values())

    @property
    def tag(self) -> str:
        """The name of the step, in the form of ranks."""
        return self.source.step.name.removesuffix("_universal")

    def copied_files(self, tag: str) -> dict[str, Path]:
        """What else lies in the folders, by its place where the step is called `tag`."""
        rewritten = {archive.path for archive in self.source.archives}
        return {
            f"{tag}/{file.name}" if folder == self.source.step else file.name: file
            for folder in (self.home, self.source.step)
            for file in sorted(folder.iterdir())
            if file.is_file() and file not in rewritten
            if file.name not in _WRITTEN and not file.name.startswith(_OF_A_RANK)
        }


def of_partition(home: Path, partition: Partition) -> State:
    """What the ranks hold together."""
    first, stage = partition.optim[0], partition.stage
    values = [archive.value["optimizer_state_dict"] for archive in partition.optim]
    _check_supported(partition, values)
    masters, base = values[0][MASTERS[stage]], values[0][BASE_OPTIMIZER[stage]]
    lengths = [ref.shape[0] if isinstance(ref, TensorRef) else 0 for ref in masters]
    moments = [_moments(base["state"].get(i, {}), length) for i, length in enumerate(lengths)]
    if any(names != moments[0] for names in moments):
        raise unsupported(partition.step, "an optimizer that keeps other numbers of some groups")
    once = {
        number: stored(first, {key: value for key, value in state.items() if key not in moments[0]})
        for number, state in base["state"].items()
    }
    return State(
        {},
        home=home,
        source=partition,
        groups=groups(partition, stored(first, base["param_groups"]), once),
        moments=moments[0],
        optimizer=common(partition, first, values[0]),
        beside=stored(first, {k: v for k, v in first.value.items() if k != "optimizer_state_dict"}),
        bf16=first.path.name.startswith("bf16_"),
        replicas=list(_replicas(partition, base["param_groups"], moments[0])),
        decisions={"data_parallel_ranks": len(partition.optim)},
    )


def _check_supported(partition: Partition, values: list[dict[str, Any]]) -> None:
    zero = (partition.metadata.get("ds_config") or {}).get("zero_optimization") or {}
    stage = partition.stage
    refusals = {
        "BF16_Optimizer, which notes no stage": any("zero_stage" not in value for value in values),
        "elastic_checkpoint": any(not isinstance(value.get(BASE_OPTIMIZER[stage]), dict) for value in values),
        "parameter_alignment": any(map(any, partition.paddings() or [])),
        "round_robin_gradients": bool(zero.get("round_robin_gradients")),
        "experts over ranks": "ds_zero_partition_groups" in values[0],
        "mics_shard_size": (zero.get("mics_shard_size") or 0) > 0,
        "zero_hpz_partition_size": (zero.get("zero_hpz_partition_size") or 1) > 1,
        "the optimizer on local disks (nvme)": (partition.step / "offloaded_tensors").is_dir(),
    }
    for word in (word for word, applies in refusals.items() if applies):
        raise unsupported(partition.step, word)


def unsupported(step: Path, word: str) -> ConfigError:
    message = f"{step} was written with {word}, which is not rewritten"
    hint = "ds_to_universal.py of DeepSpeed, and load_universal in its configuration"
    return ConfigError.of("checkpoint-unsupported", message, where=word, hint=hint)


def _moments(state: dict[str, Any], length: int) -> tuple[str, ...]:
    return tuple(key for key, value in state.items() if _is_cut(value, length))


def _is_cut(value: Any, length: int) -> bool:
    """Whether there is one number for each weight of a vector, which may have padding behind them."""
    return isinstance(value, TensorRef) and len(value.shape) == 1 and value.shape[0] >= max(1, length)


def groups(
    source: ModelFiles, settings: list[dict[str, Any]], once: dict[int, dict[str, Any]]
) -> list[Group]:
    """The groups of the optimizer, each perhaps of several vectors; `once` is by the number of a vector."""
    if [number for group in settings for number in group["params"]] != list(range(len(source.shapes))):
        message = f"{source.step} has {len(source.shapes)} vectors of parameters, and groups of others"
        raise IntegrityError.of("checkpoint-shape", message, where=str(source.step))
    return [
        Group(
            shapes={name: shape for i in group["params"] for name, shape in source.shapes[i].items()},
            vectors=tuple(group["params"]),
            settings={key: value for key, value in group.items() if key != "params"},
            once=once.get(group["params"][0], {}) if group["params"] else {},
        )
        for group in settings
    ]


def common(source: ModelFiles, archive: Archive, optimizer: dict[str, Any]) -> dict[str, Any]:
    """What an optimizer's file says beside what is cut; it must be the same on every rank."""
    plain = {key: value for key, value in optimizer.items() if key not in _CUT}
    cut = [key for key, value in plain.items() if _holds_numbers(value)]
    if cut:
        raise unsupported(source.step, f"an optimizer that keeps {cut[0]}")
    plain["zero_stage"] = source.stage  # a number in place of its own class of numbers
    changed: dict[str, Any] = stored(archive, plain)
    return changed


def _holds_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_numbers, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_numbers, value))
    return isinstance(value, TensorRef) and math.prod(value.shape) > 1


def _replicas(
    partition: Partition, settings: list[dict[str, Any]], moments: tuple[str, ...]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers that are not cut, as the count of steps, are the same in all of a group and on every rank."""
    for vectors in (group["params"] for group in settings if group["params"]):
        states = [
            ParameterState(archive, partition.states(archive).get(number, {}))
            for archive in partition.optim
            for number in vectors
        ]
        for key in {key for state in states for key in state.values} - set(moments):
            yield from replicas(key, states)


@attrs.frozen
class ParameterState:
    """Values of one file."""

    archive: Archive
    values: dict[str, Any]


def replicas(key: str, states: list[ParameterState]) -> Iterator[tuple[Tensor, Tensor]]:
    """The tensors that must be equal where all files hold the same; refuses plain values that differ."""
    first = states[0]
    value = first.values.get(key)
    for state in states[1:]:
        repeated = state.values.get(key)
        if isinstance(value, TensorRef) and isinstance(repeated, TensorRef):
            yield first.archive.tensor(key, value), state.archive.tensor(key, repeated)
        elif value != repeated:
            message = f"{key} is {value} in {first.archive.path} and {repeated} in {state.archive.path}"
            raise IntegrityError.of("checkpoint-replicas", message, where=key)


def stored(archive: Archive, value: Any) -> Any:
    """What a file holds, with its tensors as they are to be written again."""
    if isinstance(value, TensorRef):
        tensor = archive.tensor("a tensor of the optimizer", value)
        return Saved(tensor, tensor.dtype)
    if isinstance(value, dict):
        changed = type(value)((key, stored(archive, item)) for key, item in value.items())
        vars_of = getattr(value, "__dict__", None)
        if vars_of:
            changed.__dict__.update(vars_of)
        return changed
    if isinstance(value, (list, tuple)):
        return type(value)(stored(archive, item) for item in value)
    return value
