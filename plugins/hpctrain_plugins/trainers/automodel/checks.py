"""What Automodel refuses at its start, or does without a word, known before the queue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from hpctrain_plugins.trainers.automodel import adapters, sections
from hpctrain_plugins.trainers.external.config import Config, Fault, Machine
from hpctrain_plugins.trainers.external.kinds import misfit, trap_faults
from hpctrain_plugins.trainers.external.places import leaves
from hpctrain_plugins.trainers.yaml_file import Path

RECIPE = "nemo_automodel.recipes.llm.train_ft.TrainFinetuneRecipeForNextTokenPrediction"
LAUNCHERS = ("slurm", "skypilot", "nemo_run")
VALIDATION = ("validation_dataset", "validation_dataloader")
_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
_COUNTS = (
    *("global_batch_size", "local_batch_size", "max_steps", "num_epochs"),
    *("ckpt_every_steps", "val_every_steps"),
)
_KINDS: dict[Path, str] = {
    **{("step_scheduler", key): "int?" for key in _COUNTS},
    **{("optimizer", key): "float" for key in ("lr", "eps", "weight_decay")},
    ("lr_scheduler", "min_lr"): "float",
    ("dist_env", "backend"): "text",
    ("recipe",): "text",
}


def faults(
    config: Config, machine: Machine, models: Iterable[str], *, since_05: bool | None = None
) -> Iterator[Fault]:
    """Everything at once; `models` are names of what is trained, `since_05` the version where it is known."""
    names = tuple(models)
    yield from trap_faults(config, _KINDS, converts=True)
    for fault in sections.faults(config):
        yield attrs.evolve(fault, fatal=since_05 is not False)
    yield from _rate(config)
    yield from _targets(config)
    yield from _world(config, machine)
    yield from _scheduler(config)
    yield from _launchers(config)
    yield from adapters.faults(config, names)
    yield from _validation(config, names, since_05)
    yield from _patience(config)


def recipe(config: Config) -> str:
    """The recipe's target, however it is written; empty where the file is of version 0.3 or older."""
    return config.text("recipe") or config.text("recipe", "_target_")


def no_recipe(*, fatal: bool) -> Fault:
    """The fault of a file that was written for version 0.3."""
    return Fault(
        code="trainer-missing",
        message="recipe is missing, which Automodel needs since 0.4",
        path=("recipe",),
        hint=f"recipe:\n  _target_: {RECIPE}",
        fatal=fatal,
    )


def data_parallel(config: Config, machine: Machine) -> int:
    """How many model copies train; 0 where the GPUs cannot be shared out."""
    gpus_per_copy = 1
    for key in ("tp_size", "cp_size", "pp_size"):
        gpus_per_copy *= max(1, config.number("distributed", key, default=1))
    return machine.gpus // gpus_per_copy if machine.gpus % gpus_per_copy == 0 else 0


def _targets(config: Config) -> Iterator[Fault]:
    for path, value in leaves(config.data):
        if not path or path[-1] != "_target_" or path == ("recipe", "_target_"):
            continue
        if not isinstance(value, str) or not _TARGET.match(value):
            yield Fault(
                code="automodel-target",
                message=f"_target_ {value} is not a dotted path to a class or function; it is imported when"
                " the file is read",
                path=path,
                hint="_target_: nemo_automodel.components.…",
            )


def _world(config: Config, machine: Machine) -> Iterator[Fault]:
    dp = data_parallel(config, machine)
    sizes = [f"{k} {config.number('distributed', k, default=1)}" for k in ("tp_size", "cp_size", "pp_size")]
    if not dp:
        message = f"{machine.gpus} GPUs cannot be shared by {' x '.join(sizes)}"
        yield Fault(code="trainer-world", message=message, path=("distributed", "tp_size"))
        return
    dp_size = config.get("distributed", "dp_size")
    if isinstance(dp_size, int) and dp_size != dp:
        message = f"dp_size {dp_size} is not {machine.gpus} GPUs / ({' x '.join(sizes)})"
        yield Fault(
            code="trainer-world", message=message, path=("distributed", "dp_size"), hint="dp_size: none"
        )
    ep, most = (
        config.number("distributed", "ep_size", default=1),
        dp * config.number("distributed", "cp_size", default=1),
    )
    if ep > 1 and (ep > most or most % ep):
        message = f"ep_size {ep} does not divide dp x cp = {most}"
        yield Fault(code="trainer-world", message=message, path=("distributed", "ep_size"))
    yield from _batch(config, dp)


def _batch(config: Config, dp: int) -> Iterator[Fault]:
    path = ("step_scheduler", "global_batch_size")
    rows, local_rows = config.number(*path), config.number("step_scheduler", "local_batch_size", default=1)
    if rows and local_rows and rows % (local_rows * dp):
        nearest = max(1, round(rows / (local_rows * dp))) * local_rows * dp
        message = (
            f"global_batch_size {rows} is not a multiple of local_batch_size {local_rows} x {dp} model copies"
        )
        yield Fault(code="trainer-batch", message=message, path=path, hint=f"global_batch_size: {nearest}")


def _scheduler(config: Config) -> Iterator[Fault]:
    for key in _COUNTS:
        value = config.get("step_scheduler", key)
        if value is not None and not ((_number(value) or 0) > 0 and float(_number(value) or 0).is_integer()):
            message = f"{key} is {value}; a whole number above 0 is needed"
            yield Fault(code="trainer-steps", message=message, path=("step_scheduler", key))
    for key in ("global_batch_size", "local_batch_size"):
        if config.get("step_scheduler", key) is None:
            message = f"{key} is not set, and the recipe's default is for another number of GPUs"
            yield Fault(code="trainer-batch", message=message, path=("step_scheduler",), fatal=False)
    steps, often = (config.number("step_scheduler", key) for key in ("max_steps", "ckpt_every_steps"))
    if steps and often > steps:
        message = f"ckpt_every_steps {often} is more than {steps} max_steps: only the end is saved"
        yield Fault(
            code="trainer-steps", message=message, path=("step_scheduler", "ckpt_every_steps"), fatal=False
        )


def _rate(config: Config) -> Iterator[Fault]:
    """Automodel makes numbers of text by itself; a word stays one."""
    for path in (("optimizer", "lr"), ("lr_scheduler", "min_lr")):
        value = config.get(*path)
        if isinstance(value, str) and _number(value) is None:
            yield misfit(path, value, "float")


def _number(value: object) -> float | None:
    """The number that Automodel makes of a text."""
    if isinstance(value, bool):
        return None
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None


def _launchers(config: Config) -> Iterator[Fault]:
    for key in LAUNCHERS:
        if key in config.data:
            message = f"the section {key} would start the run elsewhere; it is left out of the run's file"
            yield Fault(code="automodel-launcher", message=message, path=(key,), fatal=False)


def _validation(config: Config, models: tuple[str, ...], since_05: bool | None) -> Iterator[Fault]:
    keys = [key for key in VALIDATION if config.get(key)]
    if keys and any(adapters.NEMOTRON_H.search(model) for model in models):
        yield Fault(
            code="validation-hangs",
            message="validation of NemotronH does not end: its cache makes the ranks gather for ever",
            path=(keys[0],),
            hint=f"remove {' and '.join(keys)}",
            notes=(
                "a large val_every_steps does not help: each checkpoint validates too",
                "seen with 0.2 and 0.3; later versions were not tried",
            ),
            fatal=not since_05,
        )


def _patience(config: Config) -> Iterator[Fault]:
    minutes = config.number("dist_env", "timeout_minutes")
    if 0 < minutes < 10:
        message = f"timeout_minutes {minutes}: reading a large model from a shared disk takes longer"
        yield Fault(
            code="trainer-steps",
            message=message,
            path=("dist_env", "timeout_minutes"),
            hint="timeout_minutes: 30",
            fatal=False,
        )
