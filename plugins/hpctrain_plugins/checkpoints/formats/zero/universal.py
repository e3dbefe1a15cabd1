"""DeepSpeed's universal checkpoints: ZeRO with its optimizer by parameter, which any number of ranks loads.

Written as DeepSpeed's own `ds_to_universal.py` writes them, for `"checkpoint": {"load_universal": true}`; but
of stage 3 that repeats a whole rank in `optimizer_state.pt`, which nothing reads, and which is left out here.
https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/checkpoint/ds_to_universal.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.containers.torchzip import Archive, pickle_of
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved, plan_copy, plan_file
from hpctrain_plugins.checkpoints.containers.unpickle import TensorRef
from hpctrain_plugins.checkpoints.copying.publishing import inside
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder
from hpctrain_plugins.checkpoints.formats.zero import weights
from hpctrain_plugins.checkpoints.formats.zero.optimizer import (
    ParameterState,
    State,
    common,
    groups,
    replicas,
    stored,
    unsupported,
)
from hpctrain_plugins.checkpoints.formats.zero_files import (
    BASE_OPTIMIZER,
    ModelFiles,
    Trained,
    model_files,
    number_of,
    stage_number,
)
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import OutFile, Output
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

HPCTRAIN_API = 1
CHOICES = ()
OPTIMIZER = True

_OPTIMIZER_FILE = "optimizer_state.pt"
_WEIGHTS, _STEP = "fp32", "step"
_MOMENTS = ("exp_avg", "exp_avg_sq")
"""What DeepSpeed's own script knows of an optimizer's numbers."""
_FLOATS = ("F32", "F16", "BF16")


def _holds(path: Path) -> bool:
    folder = path / "zero"
    return folder.is_dir() and ((folder / _OPTIMIZER_FILE).is_file() or any(folder.glob(f"*/{_WEIGHTS}.pt")))


def detect(path: Path) -> bool:
    """A folder of parameters lies in the folder or one step below."""
    return leads_to(path, _holds)


@attrs.frozen
class Universal(Trained):
    """A step whose optimizer lies in one file for each of its numbers of a parameter."""

    optimizer: Archive
    moments: tuple[str, ...]
    files: dict[tuple[str, str], Archive]
    """By parameter and what of it: `fp32`, `exp_avg` …, `step`."""

    @property
    def archives(self) -> list[Archive]:
        """Those of every parameter too."""
        return [self.optimizer, *self.files.values(), *self.model]

    def parameters(self, moment: str = "") -> dict[str, Tensor]:
        """Each out of its own file."""
        shapes = {name: shape for vector in self.shapes for name, shape in vector.items()}
        return {number_of(name, moment): self._read(name, moment, shape) for name, shape in shapes.items()}

    def _read(self, name: str, moment: str, shape: tuple[int, ...]) -> Tensor:
        archive = self.files[name, moment or _WEIGHTS]
        value = archive.value
        if isinstance(value, dict):
            if value.keys() - {"param", "cat_dim"}:
                raise unsupported(self.step, f"tensor-parallel ranks ({', '.join(sorted(value))})")
            value = value.get("param")
        if not isinstance(value, TensorRef):
            message = f"{archive.path} holds no tensor"
            raise IntegrityError.of("checkpoint-damaged", message, where=str(archive.path))
        tensor = archive.tensor(number_of(name, moment), value)
        if tensor.shape not in (tuple(shape), (math.prod(shape),)):
            message = f"{tensor.name} has shape {list(tensor.shape)} in {archive.path}, not {list(shape)}"
            raise IntegrityError.of("checkpoint-shape", message, where=tensor.name)
        return tensor.shaped(*shape)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step, or all that its optimizer holds."""
    step = step_folder(path, options.tag, "latest_universal", _holds)
    source = _source(step)
    if options.optimizer:
        return _state(path, source)
    return weights.finished(weights.of_step(source), path, step, options)


def _source(step: Path) -> Universal:
    optimizer = _opened(step / "zero" / _OPTIMIZER_FILE)
    if not isinstance(optimizer.value, dict) or not isinstance(optimizer.value.get("param_groups"), list):
        message = f"{optimizer.path} holds no groups of an optimizer"
        raise IntegrityError.of("checkpoint-damaged", message, where=str(optimizer.path))
    stage = stage_number(optimizer.value.get("zero_stage", 1))
    ranks = optimizer.value.get("partition_count", 1)
    models = model_files(step, 0, int(ranks) if stage == 3 else 1, stage)
    if len(list(step.glob("*mp_rank_*_model_states.pt"))) > len(models):
        raise unsupported(step, "tensor-parallel ranks")
    names = [name for vector in ModelFiles(step, stage, models).shapes for name in vector]
    folders = [step / "zero" / inside(name, models[0].path) for name in names]
    keys = sorted(file.stem for file in folders[0].glob("*.pt")) if folders else []
    moments = tuple(name for name in keys if name not in (_WEIGHTS, _STEP))
    files = {
        (name, key): _opened(folder / f"{key}.pt")
        for name, folder in zip(names, folders, strict=True)
        for key in dict.fromkeys((_WEIGHTS, *keys))
    }
    return Universal(step, stage, models, optimizer, moments, files)


def _opened(file: Path) -> Archive:
    if not file.is_file():
        message = f"{file} is missing"
        raise IntegrityError.of("checkpoint-incomplete", message, where=str(file))
    return torchzip.open_archive(file)


def _state(home: Path, source: Universal) -> State:
    value, config = source.optimizer.value, source.metadata.get("ds_config") or {}
    settings = value["param_groups"]
    states_of = {number: _held_once(source, number) for number in range(len(source.shapes))}
    of_groups = [
        [state for number in group["params"] for state in states_of.get(number, [])] for group in settings
    ]
    return State(
        {},
        home=home,
        source=source,
        groups=groups(
            source,
            stored(source.optimizer, settings),
            {
                number: stored(states[0].archive, states[0].values)
                for number, states in states_of.items()
                if states
            },
        ),
        moments=source.moments,
        optimizer=common(source, source.optimizer, value),
        beside={key: source.metadata[key] for key in ("ds_config", "ds_version") if key in source.metadata},
        bf16=any((config.get(key) or {}).get("enabled") is True for key in ("bf16", "bfloat16")),
        replicas=[pair for states in of_groups if states for pair in replicas(_STEP, states)],
    )


def _held_once(source: Universal, number: int) -> list[ParameterState]:
    """What is kept once of a vector: at stage 3 in the optimizer's file, else beside each parameter."""
    if source.stage == 3:
        state = source.optimizer.value[BASE_OPTIMIZER[3]]["state"].get(number, {})
        outside = {key: value for key, value in state.items() if key not in source.moments}
        return [ParameterState(source.optimizer, outside)]
    files = (source.files.get((name, _STEP)) for name in source.shapes[number])
    return [ParameterState(file, {_STEP: file.value}) for file in files if file is not None]


def plan(model: Model, _: ConvertOptions) -> Output:
    """A file for each of the optimizer's numbers of a parameter."""
    assert isinstance(model, State)  # request.check has seen to it
    step = model.source.step
    if model.moments not in ((), _MOMENTS):
        raise unsupported(step, f"an optimizer that keeps {', '.join(model.moments)}")
    tag = f"{model.tag}_universal"
    output = Output(decisions={"universal": tag})
    try:
        output.files += [*_of_parameters(model, f"{tag}/zero"), *_untrained(model, f"{tag}/zero")]
    except TypeError as error:
        message = f"{step} cannot be rewritten: {error}"
        raise ConfigError.of("checkpoint-unsupported", message, where=str(step)) from error
    for archive in model.source.model:
        output.files.append(plan_copy(f"{tag}/{archive.path.name}", archive, pickle_of(archive.path)))
    output.copies |= model.copied_files(tag)
    output.texts["latest_universal"] = tag.encode()
    model.warnings += _lost_at_load(model)
    return output


def _of_parameters(model: State, folder: str) -> Iterator[OutFile]:
    """Of stages 1 and 2 with the shape, of stage 3 as a line: so DeepSpeed writes them, and reads both."""
    whole = model.source.stage < 3
    for group in model.groups:
        for name in group.shapes:
            place = f"{folder}/{inside(name, model.source.step)}"
            for moment in ("", *model.moments):
                tensor = model.tensors[number_of(name, moment)]
                saved = Saved(tensor if whole else tensor.shaped(tensor.numel), tensor.dtype)
                value = {"cat_dim": 0, "param": saved} if whole else saved
                yield plan_file(f"{place}/{moment or _WEIGHTS}.pt", value)
            if whole and _STEP in group.once:
                yield plan_file(f"{place}/{_STEP}.pt", group.once[_STEP])
    settings = [{**group.settings, "params": list(group.vectors)} for group in model.groups]
    value = {**model.optimizer, "param_groups": settings}
    if not whole:
        states = {number: group.once for group in model.groups for number in group.vectors}
        value[BASE_OPTIMIZER[3]] = {"state": states, "param_groups": settings}
    yield plan_file(f"{folder}/{_OPTIMIZER_FILE}", value)


def _untrained(model: State, folder: str) -> Iterator[OutFile]:
    """What stages 1 and 2 have beside what was trained: in DeepSpeed's own too, though no load reads it."""
    for name, tensor in model.source.module().items() if model.source.stage < 3 else ():
        if name not in model.tensors and tensor.dtype in _FLOATS:
            place = f"{folder}/{inside(name, model.source.step)}/{_WEIGHTS}.pt"
            yield plan_file(place, {"param": Saved(tensor, "F32")})


def _lost_at_load(model: State) -> Iterator[str]:
    """What DeepSpeed does not take from such a checkpoint, though it lies there."""
    first = model.groups[0].settings
    changed = sorted(
        {key for group in model.groups for key, value in group.settings.items() if value != first.get(key)}
    )
    if model.source.stage == 3 and changed:
        yield (
            "of stage 3 DeepSpeed's load_universal gives every group the settings of the first, and "
            f"{', '.join(changed)} differ here: convert --ranks N keeps them"
        )
    metadata = model.source.metadata
    untrained = [*(metadata.get("frozen_param_shapes") or ()), *(metadata.get("buffer_names") or ())]
    if untrained:
        yield (
            f"DeepSpeed's load_universal reads no frozen weights and no buffers ({untrained[0]} …): the "
            "model must have them before; convert --ranks N writes a checkpoint that brings them"
        )
