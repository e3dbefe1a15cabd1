"""The files of a DeepSpeed ZeRO checkpoint, read and checked against each other."""

from __future__ import annotations

import abc
import math
import re
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.containers.torchzip import Archive
from hpctrain_plugins.checkpoints.containers.unpickle import Inert, TensorRef
from hpctrain_plugins.checkpoints.tensors import Tensor, concat

_OPTIM = re.compile(r"(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$")
_MODEL = re.compile(r"(?:zero_pp_rank_(\d+)_)?mp_rank_(\d+)_model_states\.pt$")
WHOLE_MODEL = "mp_rank_00_model_states.pt"
MASTERS = {
    1: "single_partition_of_fp32_groups",
    2: "single_partition_of_fp32_groups",
    3: "fp32_flat_groups",
}
"""By stage: what an optimizer's file calls the weights in full precision."""

BASE_OPTIMIZER = {1: "base_optimizer_state", 2: "base_optimizer_state", 3: "optimizer_state_dict"}
"""By stage: what it calls the state of torch's own optimizer."""

_EXPERT = "expp_rank_*_optim_states.pt"
_STAGES = ("disabled", "optimizer_states", "gradients", "weights")


def optim_files(step: Path) -> dict[tuple[int, int], Path]:
    """(tensor-parallel rank, data-parallel rank) -> optimizer file."""
    return {(int(m[2]), int(m[1])): p for p in step.iterdir() if (m := _OPTIM.match(p.name))}


def is_unpartitioned(step: Path) -> bool:
    """Whether DeepSpeed wrote this without ZeRO, and on one tensor-parallel rank."""
    models = [path.name for path in step.glob("mp_rank_*_model_states.pt")]
    return models == [WHOLE_MODEL] and not (step / "zero").is_dir() and not optim_files(step)


@attrs.frozen
class ModelFiles:
    """What the model files of a step say: the parameters' names and shapes, and all that was not trained."""

    step: Path
    stage: int
    model: list[Archive]

    @property
    def metadata(self) -> dict[str, Any]:
        """What the first model file says; the others repeat it."""
        value: dict[str, Any] = self.model[0].value
        return value

    @property
    def shapes(self) -> list[dict[str, tuple[int, ...]]]:
        """Per vector of the optimizer, the parameters in the order in which they lie there."""
        groups = self.metadata.get("param_shapes") or []
        return [groups] if isinstance(groups, dict) else list(groups)

    @property
    def archives(self) -> list[Archive]:
        """Every file that tensors are read from."""
        return self.model

    def frozen(self) -> dict[str, Tensor]:
        """Parameters that were not trained, where the checkpoint says them apart."""
        shapes = self.metadata.get("frozen_param_shapes") or {}
        parts: list[dict[str, TensorRef]] = [m.value.get("frozen_param_fragments") or {} for m in self.model]
        out = {}
        for name, shape in shapes.items():
            if name not in parts[0]:
                raise IntegrityError.of(
                    "checkpoint-incomplete", f"{name} is missing from {self.model[0].path}", where=name
                )
            if self.stage != 3:
                out[name] = self.model[0].tensor(name, parts[0][name]).shaped(*shape)
                continue
            ranks = [m.tensor(name, p[name]) for m, p in zip(self.model, parts, strict=True)]
            out[name] = _whole(name, [_line(t) for t in ranks], shape)
        return out

    def module(self) -> dict[str, Tensor]:
        """The weights as the model itself held them, rounded to its own type."""
        module = self.metadata.get("module") or {}
        return {k: t for k, t in self.model[0].tensors(module).items() if t.numel}


@attrs.frozen
class Trained(ModelFiles, abc.ABC):
    """Model files with what the optimizer keeps of each parameter beside them."""

    @abc.abstractmethod
    def parameters(self, moment: str = "") -> dict[str, Tensor]:
        """Of every parameter that was trained the weights, or another number that the optimizer keeps."""


@attrs.frozen
class Partition(Trained):
    """What all data-parallel ranks of one tensor-parallel rank hold together."""

    optim: list[Archive]

    @property
    def archives(self) -> list[Archive]:
        """Those of the optimizer too."""
        return [*self.optim, *self.model]

    def paddings(self) -> list[list[int]] | None:
        """Elements left free after each parameter, per group."""
        groups = self.optim[0].value["optimizer_state_dict"].get("param_alignment_paddings")
        return [list(map(int, group)) for group in groups] if groups is not None else None

    def parameters(self, moment: str = "") -> dict[str, Tensor]:
        """Put together from the vectors of all ranks."""
        vectors = self._vectors(moment)
        return _sharded(self, vectors, moment) if self.stage == 3 else _sliced(self, vectors, moment)

    def states(self, archive: Archive) -> dict[int, dict[str, Any]]:
        """What the optimizer keeps of each vector beside the weights, by the vector's number."""
        optimizer = archive.value["optimizer_state_dict"]
        states: dict[int, dict[str, Any]] = optimizer[BASE_OPTIMIZER[self.stage]]["state"]
        return states

    def _vectors(self, moment: str) -> list[list[Tensor]]:
        """Per data-parallel rank, its flat vectors."""
        out = []
        for archive in self.optim:
            if moment:
                states = self.states(archive)
                refs: Any = [states.get(i, {}).get(moment) for i in range(len(self.shapes))]
            else:
                refs = archive.value["optimizer_state_dict"].get(MASTERS[self.stage])
            key = moment or MASTERS[self.stage]
            if not isinstance(refs, list) or not all(isinstance(r, TensorRef) for r in refs):
                raise IntegrityError.of(
                    "checkpoint-incomplete", f"{archive.path} has no {key}", where=str(archive.path)
                )
            out.append([archive.tensor(f"{key}[{i}]", ref) for i, ref in enumerate(refs)])
        if len({len(vectors) for vectors in out}) != 1:
            raise IntegrityError.of("checkpoint-shape", f"ranks of {self.step} differ in their groups")
        return out


def _line(tensor: Tensor) -> Tensor:
    return tensor.shaped(tensor.numel)


def number_of(parameter: str, moment: str) -> str:
    """The name of what the optimizer keeps of a parameter."""
    return f"{parameter}.{moment}" if moment else parameter


def _sliced(partition: Partition, groups: list[list[Tensor]], moment: str) -> dict[str, Tensor]:
    """Stages 1 and 2: one vector per group, cut over ranks wherever the cut falls."""
    out: dict[str, Tensor] = {}
    paddings = partition.paddings()
    unit = 2 * len(groups)
    if len(partition.shapes) != len(groups[0]):
        raise IntegrityError.of("checkpoint-shape", f"{partition.step} has groups without shapes")
    for g, shapes in enumerate(partition.shapes):
        vector, at = concat([_line(rank[g]) for rank in groups]), 0
        for i, (parameter, shape) in enumerate(shapes.items()):
            name, size = number_of(parameter, moment), math.prod(shape)
            if at + size > vector.numel:
                raise IntegrityError.of(
                    "checkpoint-shape", f"{name} extends beyond the end of its group", where=name
                )
            out[name] = vector.part(0, at, at + size).shaped(*shape).named(name)
            at += size + (paddings[g][i] if paddings else 0)
        if -(-at // unit) != -(-vector.numel // unit):
            message = f"group {g} of {partition.step} holds {vector.numel} numbers, its shapes need {at}"
            raise IntegrityError.of("checkpoint-shape", message, where=str(partition.step))
    return out


def _sharded(partition: Partition, groups: list[list[Tensor]], moment: str) -> dict[str, Tensor]:
    """Stage 3: every parameter cut over all ranks, at the same place in each rank's vector."""
    vectors = [concat([_line(t) for t in rank]) for rank in groups]
    out: dict[str, Tensor] = {}
    at, world = 0, len(groups)
    for parameter, shape in ((n, s) for group in partition.shapes for n, s in group.items()):
        name, share = number_of(parameter, moment), -(-math.prod(shape) // world)
        if any(at + share > v.numel for v in vectors):
            raise IntegrityError.of(
                "checkpoint-shape", f"{name} extends beyond the end of its ranks", where=name
            )
        out[name] = _whole(name, [v.part(0, at, at + share) for v in vectors], shape)
        at += share
    for archive, vector in zip(partition.optim, vectors, strict=True):
        if vector.numel != at:
            message = f"{archive.path} holds {vector.numel} numbers, its shapes need {at}"
            raise IntegrityError.of("checkpoint-shape", message, where=str(archive.path))
    return out


def _whole(name: str, ranks: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    size = math.prod(shape)
    line = concat(ranks)
    if line.numel < size:
        raise IntegrityError.of("checkpoint-shape", f"the ranks hold too little of {name}", where=name)
    return line.part(0, 0, size).shaped(*shape).named(name)


def read(step: Path) -> list[Partition]:
    """One partition per tensor-parallel rank, complete."""
    if list(step.glob(_EXPERT)):
        raise ConfigError.of(
            "checkpoint-unsupported", f"{step} holds experts over ranks, which is not supported"
        )
    files = optim_files(step)
    if not files:
        raise IntegrityError.of("checkpoint-incomplete", f"{step} holds no optimizer files", where=str(step))
    tps = sorted({tp for tp, _ in files})
    return [_partition(step, tp, {d: p for (t, d), p in files.items() if t == tp}) for tp in tps]


def _partition(step: Path, tp: int, files: dict[int, Path]) -> Partition:
    optim = [torchzip.open_archive(files[d]) for d in sorted(files)]
    for archive in optim:
        if not isinstance(archive.value, dict) or "optimizer_state_dict" not in archive.value:
            raise IntegrityError.of(
                "checkpoint-damaged", f"{archive.path} holds no optimizer", where=str(archive.path)
            )
    state = optim[0].value["optimizer_state_dict"]
    world = state.get("partition_count", len(optim))
    world = max(world) if isinstance(world, list) else int(world)
    lost = sorted(set(range(world)) - set(files))
    if lost:
        name = files[min(files)].name.replace(f"pp_rank_{min(files)}_", f"pp_rank_{lost[0]}_")
        raise IntegrityError.of(
            "checkpoint-incomplete", f"{step / name} is missing, {world} ranks wrote this", where=name
        )
    if len(files) != world:
        message = f"{files[max(files)]} is left from a larger run; {world} ranks wrote this"
        raise IntegrityError.of("checkpoint-stale", message, where=str(files[max(files)]))
    stage = stage_number(state.get("zero_stage", 1))
    count = world if stage == 3 else 1
    return Partition(step, stage, model_files(step, tp, count, stage), optim=optim)


def stage_number(value: Any) -> int:
    """DeepSpeed's ZeroStageEnum, which some Pythons write by its number and some by its name."""
    stage = value.args[0] if isinstance(value, Inert) else value
    return _STAGES.index(stage) if stage in _STAGES else int(stage)


def model_files(step: Path, tp: int, count: int, stage: int) -> list[Archive]:
    """What the model files of one tensor-parallel rank hold, of `count` data-parallel ranks."""
    files = {
        int(m[1] or 0): p
        for p in step.iterdir()
        if (m := _MODEL.match(p.name)) and int(m[2]) == tp and (m[1] is not None) == (stage == 3)
    }
    for rank in range(count):
        if rank not in files:
            prefix = f"zero_pp_rank_{rank}_" if stage == 3 else ""
            name = f"{prefix}mp_rank_{tp:02d}_model_states.pt"
            raise IntegrityError.of(
                "checkpoint-incomplete", f"{step / name} is missing", where=str(step / name)
            )
    if len(files) != count:
        message = f"{files[max(files)]} is left from a larger run; {count} ranks wrote this"
        raise IntegrityError.of("checkpoint-stale", message, where=str(files[max(files)]))
    archives = [torchzip.open_archive(files[rank]) for rank in range(count)]
    for archive in archives:
        if not isinstance(archive.value, dict) or "param_shapes" not in archive.value:
            message = f"{archive.path} does not describe the optimizer's parameters"
            raise IntegrityError.of("checkpoint-damaged", message, where=str(archive.path))
    return archives
