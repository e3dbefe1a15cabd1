"""`trl`: supervised fine-tuning, LoRA and pretraining with transformers, TRL and PEFT.

The keys of `[train.trl]` are the flags of `python -m hpctrain_trl`. `model`, `tokenizer` and the
datasets name assets: `dataset`, `dataset:train` or, for something inside, `dataset/train.jsonl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal  # noqa: F401  (the types of the settings)

import attrs
from attrs import frozen

from hpctrain.plugin import (
    Asset,
    Cluster,
    Cmd,
    Configs,
    EnvVar,
    How,
    Join,
    Layer,
    Layout,
    Pattern,
    Plan,
    Problem,
    Ranks,
    Rule,
    RunSpec,
    Stack,
    Step,
    Tell,
    Train,
    Var,
    Word,
    hookimpl,
)
from hpctrain_plugins.trainers import caches, ranks, starts, tracker, trl_checks, trl_numbers
from hpctrain_plugins.trainers.config_file import json_file
from hpctrain_trl.settings import ABOUT_DATA, CHECKPOINT, CHECKPOINT_LAST, FIELDS

HPCTRAIN_API = 1


def _option(name: str) -> Any:
    field = FIELDS[name]
    facts = field.metadata
    bounds = [attrs.validators.ge(facts["least"])] if "least" in facts else []
    bounds += [attrs.validators.le(facts["most"])] if "most" in facts else []
    return attrs.field(
        default=field.default if field.default_factory is MISSING else attrs.Factory(field.default_factory),
        validator=bounds or None,
        metadata=dict(facts),
    )


_NAMES = [name for name, field in FIELDS.items() if not field.metadata.get("job_only")]
Options: Any = frozen(
    type(
        "Options",
        (),
        {
            "__doc__": "The trainer's own settings without those that the plan decides.",
            "__module__": __name__,
            "__annotations__": {name: FIELDS[name].type for name in _NAMES},
            **{name: _option(name) for name in _NAMES},
        },
    ),
    kw_only=True,
)

STACKS = {
    "2026-11": Stack(
        packages=(
            *("transformers==5.23.0", "trl==1.16.0", "peft==0.21.2", "accelerate==1.15.0", "datasets==5.2.0"),
        )
    ),
    "2025-10": Stack(
        packages=(
            *("transformers==4.57.1", "trl==0.23.1", "peft==0.17.1", "accelerate==1.10.1", "datasets==3.6.0"),
        )
    ),
}
"""Both trained in our tests; torch comes with them, or is the machine's."""
_CONFIG = "trl.json"
_FIELDS = "fields"
_DATASETS = ("train_dataset", "eval_dataset")
_ASSETS = ("model", "tokenizer", *_DATASETS)
_PROGRESS = (
    r"step (?P<step>\d+)/\d+ \| loss (?P<loss>\S+)(?: \| lr (?P<lr>\S+))?"
    r"(?: \| grad_norm (?P<grad_norm>\S+))? \| tokens (?P<tokens>\d+) \| tokens_per_s (?P<tokens_per_s>\d+)"
)


@hookimpl
def train_command(run: RunSpec, cluster: Cluster, assets: Mapping[str, Word], configs: Configs) -> Train:
    """`python -m hpctrain_trl` in every rank, its settings in one JSON file."""
    options = shared_out(run, cluster)
    program: tuple[Word, ...] = (
        *("-m", "hpctrain_trl", "--config"),
        Join(Var("HPC_RUN"), f"/steps/train/{_CONFIG}"),
    )
    per_gpu = options.ranks == "per_gpu"
    tracked = tracker.mode(run, cluster, used=options.report_to == "wandb" or bool(options.wandb_project))
    ranks_per_node = options.processes_per_node or max(1, ranks.gpus_per_node(run, cluster))
    return Train(
        argv=(*(("python",) if per_gpu else ranks.torchrun(ranks_per_node)), *program),
        layer=Layer(
            env=(*(ranks.PER_GPU if per_gpu else ()), *_env(options), *tracked, *caches.env(cluster)),
            job=caches.job(cluster),
            binds=starts.binds(_start(run, assets)),
            files=(json_file(_CONFIG, _settings(run, cluster, options, assets)),),
        ),
        ranks=Ranks.PER_GPU if per_gpu else Ranks.PER_NODE,
        checkpoints=Layout(
            format="peft" if options.method == "lora" else "hf",
            name=CHECKPOINT,
            complete=CHECKPOINT_LAST,
            manifests=True,
            keeps=int(str(FIELDS["save_total_limit"].default)),
        ),
        start=_start(run, assets),
        progress=(Pattern(regex=_PROGRESS),),
        before=_fields(run, options, assets),
        code=("hpctrain_trl",),
        numbers=trl_numbers.numbers(
            options,
            trl_numbers.Ranks.of(run, cluster, world_of(run, cluster)),
            _config(run, options, configs),
        ),
    )


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:  # noqa: ARG001
    """What is wrong with `[train.trl]` before anything is written."""
    world = world_of(run, cluster)
    yield from trl_checks.problems(options_of(run), run, world)
    if run.train.global_batch_size is not None:
        from hpctrain_plugins.trainers import batches

        passes = options_of(run).gradient_accumulation_steps
        yield from batches.problems(run, world, passes=passes, key="train.trl.gradient_accumulation_steps")


@hookimpl
def check_files(run: RunSpec, files: Mapping[str, Path], tell: Tell) -> Iterable[Problem]:
    """What is wrong with the rows that it will train on."""
    from hpctrain_plugins.trainers import trl_rows

    return trl_rows.problems(options_of(run), files, tell)


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures of this trainer and of the libraries below it."""
    from hpctrain_plugins.trainers.trl_rules import RULES

    return RULES


def options_of(run: RunSpec) -> Any:
    """The run's `[train.trl]`; the defaults where the run file has no such table."""
    return run.train.options if isinstance(run.train.options, Options) else Options()


def shared_out(run: RunSpec, cluster: Cluster) -> Any:
    """The options with the rows and passes of a rank that make up the step that the run asks for."""
    options = options_of(run)
    if run.train.global_batch_size is None:
        return options
    from hpctrain_plugins.trainers import batches  # most run files leave it to the machine

    share = batches.share(run, options.per_device_train_batch_size, world_of(run, cluster))
    if share is None:
        return options
    return attrs.evolve(
        options, per_device_train_batch_size=share.micro, gradient_accumulation_steps=share.passes
    )


def _config(run: RunSpec, options: Any, configs: Configs) -> Mapping[str, Any] | None:
    """The `config.json` of the model that is trained, where it can be read."""
    if options.config:
        return dict(options.config)
    key = starts.key_of(run) if run.checkpoint.start else trl_checks.parts(options.model)[0]
    return configs.get(key)


def world_of(run: RunSpec, cluster: Cluster) -> int:
    """How many ranks train."""
    options = options_of(run)
    return ranks.world(run, cluster, options.processes_per_node if options.ranks == "per_node" else 0)


def _settings(run: RunSpec, cluster: Cluster, options: Any, assets: Mapping[str, Word]) -> dict[str, Any]:
    """What the job reads: the options with assets as paths, and what the plan decides."""
    chosen = {
        name: value
        for name, value in attrs.asdict(options, recurse=False).items()
        if not FIELDS[name].metadata.get("plan_only")
    }
    for name in _ASSETS:
        chosen[name] = located(chosen[name], run, assets)
    if trl_checks.needs_no_model(options):
        chosen["model"] = ""
    if run.checkpoint.start:
        chosen["model"] = _start(run, assets)
    return {
        **chosen,
        "config": dict(options.config),
        "run_name": options.run_name or run.name,
        "save_every_s": run.checkpoint.every.seconds if run.checkpoint.every else 0,
        "save_total_limit": run.checkpoint.keep or FIELDS["save_total_limit"].default,
        "resume": starts.word(run.checkpoint.resume, assets),
        "peak_tflops": cluster.hardware.peak_tflops,
    }


def _start(run: RunSpec, assets: Mapping[str, Word]) -> Word:
    """The model that `start` names, or the checkpoint that `resume` does."""
    return starts.word(starts.of_run(run), assets)


def _fields(run: RunSpec, options: Any, assets: Mapping[str, Word]) -> tuple[Step, ...]:
    """Whether the data has the fields that are asked for: known as soon as it is here, not in the queue."""
    named = [trl_checks.parts(spec)[0] for key in _DATASETS if (spec := getattr(options, key))]
    if not any(_brought(run.assets[name]) for name in named if name in run.assets):
        return ()
    settings = {key: getattr(options, key) for key in ABOUT_DATA}
    for key in _DATASETS:
        settings[key] = located(settings[key], run, assets)
    file = json_file("fields.json", settings)
    path = Join(Var("HPC_RUN"), f"/steps/{_FIELDS}/{file.path}")
    check = Cmd.of(Var("HPC_PYTHON"), "-m", "hpctrain_trl.fields", path)
    return (Step(name=_FIELDS, commands=(check,), minutes=5, files=(file,), code=("hpctrain_trl",)),)


def _brought(asset: Asset) -> bool:
    """Whether it lies here before any job: what a step makes of it in the environment does not."""
    return bool(asset.hub or asset.url or asset.git or asset.path)


def located(spec: str, run: RunSpec, assets: Mapping[str, Word]) -> Word:
    """`asset`, `asset/below` and `asset:split` as a word; an asset's own split is the default."""
    name, below, split = trl_checks.parts(spec)
    if name not in assets:
        return spec
    split = split or run.assets[name].split
    ends = (f"/{below}" if below else "", f":{split}" if split else "")
    return Join(assets[name], *filter(None, ends)) if any(ends) else assets[name]


def _env(options: Any) -> tuple[EnvVar, ...]:
    """Variables that the libraries read, each with its reason."""
    offline = "everything was brought here before: a node without network must not try"
    variables = [
        EnvVar(name="OMP_NUM_THREADS", value="1", how=How.DEFAULT, why="ranks that share cores burn them"),
        EnvVar(name="TOKENIZERS_PARALLELISM", value="false", why="its threads do not survive a fork"),
        EnvVar(name="PYTHONUNBUFFERED", value="1", why="the log shows the last line before a crash"),
        EnvVar(name="HF_HUB_OFFLINE", value="1", why=offline),
        EnvVar(name="HF_DATASETS_OFFLINE", value="1", why=offline),
    ]
    if options.wandb_project:
        project = re.sub(r"[^\w.-]", "-", options.wandb_project)
        variables.append(EnvVar(name="WANDB_PROJECT", value=project, why="train.trl.wandb_project"))
    return tuple(variables)
