"""`automodel`: fine-tuning and pretraining with NVIDIA NeMo Automodel, from its own YAML.

`config` names the YAML beside the run file; `[train.automodel.settings]` has the same keys and lies over
it, or stands alone. One resolved file is written for each run, so that no override can be lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any

import attrs

from hpctrain.plugin import (
    Cluster,
    ConfigError,
    Configs,
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
    Tell,
    Train,
    Var,
    Word,
    hookimpl,
)
from hpctrain_plugins.trainers import batches, caches, ranks, starts, tracker
from hpctrain_plugins.trainers.automodel import checks, overrides
from hpctrain_plugins.trainers.automodel.rules import RULES
from hpctrain_plugins.trainers.automodel.size import numbers
from hpctrain_plugins.trainers.command import filled as placed
from hpctrain_plugins.trainers.external import deep, runs, starting
from hpctrain_plugins.trainers.external.config import Config, Machine, merged, over
from hpctrain_plugins.trainers.external.places import (
    CHECKPOINTS,
    asset_faults,
    hub_faults,
    leaves,
    shared_folder,
)
from hpctrain_plugins.trainers.external.resolved import filled
from hpctrain_plugins.trainers.yaml_file import number, read

HPCTRAIN_API = 1

NAME = "automodel"
FILE = "automodel.yaml"
STACKS = {
    "2026-11": Stack(
        packages=(
            *("nemo-automodel==0.7.0", "datasets==5.2.0", "torchao==0.18.0", "torchdata==0.11.0"),
            "triton<3.8",
        )
    )
}
"""Seen with torch 2.13 on a CPU: recipes, sections and LoRA's kernels import, and its loader judges files.

Of triton every torch for CUDA brings its own; one without would take 3.9, which these kernels do not know.
"""
_MICRO = ("step_scheduler", "local_batch_size")
_MODULE = "nemo_automodel.cli.app"
_LOADED = ("path_or_dataset_id", "pretrained_model_name_or_path", "dataset_path", "path_or_dataset")
_FOLDER = ("checkpoint", "checkpoint_dir")
START = starting.StartKeys(
    load=("checkpoint", "restore_from"), save=_FOLDER, own_words=("LATEST",), resumes_alone=True
)
"""Automodel's own key of where training starts; without it, it looks for its newest checkpoint."""
PROGRESS = (
    Pattern(
        regex=r"step (?P<step>\d+) \| epoch \d+ \| loss (?P<loss>[\d.naif]+)"
        r" \| grad_norm (?P<grad_norm>[\d.naif]+) \| lr (?P<lr>[\d.e+-]+) \| mem [\d.]+ GiB"
        r" \| tps (?P<tokens_per_s>[\d.]+)\("
    ),
    Pattern(
        regex=r'\[val\] name "[^"]*" \| step (?P<step>\d+) \| epoch \d+ \| loss (?P<eval_loss>[\d.naif]+)'
    ),
)
"""Steps count from 0; a progress bar may stand in front on the same line."""


@attrs.frozen(kw_only=True)
class Options:
    """NVIDIA NeMo Automodel with your YAML, checked before the queue and resolved into one file for a run."""

    config: str = attrs.field(default="", metadata={"input": True})
    """Your Automodel YAML, beside the run file."""
    model_config: str = attrs.field(default="", metadata={"input": True})
    """The model's own `config.json`, beside the run file: the plan then knows its size, work and memory."""
    deep: bool = False
    """Let the trainer's own code read the resolved file in a short job, before the nodes with GPUs."""
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys of the same YAML that lie over it, or stand alone."""
    overrides: tuple[str, ...] = ()
    """Words of an old command line: `--step_scheduler.max_steps=20`."""
    program: str = ""
    """A script of `[code]` instead of `nemo_automodel.cli.app`: versions before 0.4 need one."""
    torchrun: bool = True
    """False: the scheduler starts every rank itself, for tests on one GPU and where torchrun fails."""


@hookimpl
def train_command(run: RunSpec, cluster: Cluster, assets: Mapping[str, Word], configs: Configs) -> Train:
    """Automodel's command line with one resolved YAML, under torchrun on every node or in every rank."""
    config = _shared_out(run, cluster)
    options = _options(run)
    file = Join(Var("HPC_RUN"), f"/steps/train/{FILE}")
    program: tuple[Word, ...] = (options.program, "--config") if options.program else ("-m", _MODULE)
    values = _decided(run, config)
    begin = starts.word(starting.text_of(run, config, START), assets)
    layout = Layout(
        format="peft" if config.table("peft") else "hf",
        name=r"epoch_\d+_step_(?P<step>\d+)",
        complete="losses.json",
    )
    resolved = starting.configurations(
        FILE,
        filled(values, lambda text: placed(text, run, cluster, assets)),
        keys=START,
        layout=layout,
        start=begin,
    )
    world = ranks.world(run, cluster)
    agent = ranks.torchrun(max(1, ranks.gpus_per_node(run, cluster))) if options.torchrun else ("python",)
    return Train(
        argv=(*agent, *program, file),
        layer=Layer(
            env=(
                *(() if options.torchrun else ranks.PER_GPU),
                *runs.ENV,
                *caches.env(cluster),
                *tracker.mode(run, cluster, used="wandb" in config.data),
            ),
            job=(*caches.job(cluster), *resolved.job),
            task=runs.entered(assets),
            binds=resolved.binds,
            files=resolved.files,
        ),
        ranks=Ranks.PER_NODE if options.torchrun else Ranks.PER_GPU,
        checkpoints=layout,
        start=begin,
        progress=PROGRESS,
        numbers=numbers(config, runs.machine(run, cluster), _model(run, config, configs)),
        before=deep.steps(NAME, resolved.files[-1], world, assets) if options.deep else (),
    )


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
    """What is wrong with the configuration on these nodes, before anything is written."""
    if plan.train is None:
        return
    config = _shared_out(run, cluster)
    machine = runs.machine(run, cluster)
    yield from batches.problems(run, checks.data_parallel(config, machine))
    models = _models(config, run)
    for fault in (
        *checks.faults(config, machine, models, since_05=_since_05(run)),
        *(() if checks.recipe(config) or _options(run).program else (checks.no_recipe(fatal=False),)),
        *asset_faults(config, run),
        *shared_folder(config, _FOLDER),
        *hub_faults(config, _LOADED),
        *starting.idle_faults(run, config, START),
    ):
        yield config.problem(fault)
    yield from starting.problems(run, config, START)
    yield from (problem for file in config.files for problem in file.problems)
    yield from overrides.problems(_options(run).overrides)
    yield from runs.counted_problems(run, NAME, "ckpt_every_steps")


@hookimpl
def check_files(run: RunSpec, files: Mapping[str, FilePath], tell: Tell) -> Iterable[Problem]:
    """What is wrong with the chats that it will train on."""
    from hpctrain_plugins.trainers.automodel import chat_files

    return chat_files.problems(config_of(run), files, tell)


@hookimpl
def check_config(files: Mapping[str, str], gpus: int, nodes: int) -> Iterable[Problem]:
    """The same for bare files, without a run."""
    documents = [read(text, name, NAME) for name, text in files.items()]
    if len(documents) != 1:
        raise ConfigError.of("trainer-conflict", "Automodel reads one file", hint="name one file")
    config = merged(NAME, documents, {})
    models = [value for _, value in leaves(config.table("model")) if isinstance(value, str)]
    for fault in (
        *checks.faults(config, Machine(gpus=gpus, nodes=nodes), models),
        *(() if checks.recipe(config) else (checks.no_recipe(fatal=True),)),
        *(attrs.evolve(fault, fatal=False) for fault in shared_folder(config, _FOLDER)),
    ):
        yield config.problem(fault)
    yield from documents[0].problems


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures of this trainer."""
    return RULES


def config_of(run: RunSpec) -> Config:
    """The run's configuration; ConfigError when the file is no YAML or there is none."""
    options = _options(run)
    documents = runs.one_file(
        run, options.config, NAME, or_settings=options.settings, example="finetune.yaml"
    )
    return merged(NAME, documents, over(options.settings, overrides.values(options.overrides)))


def _shared_out(run: RunSpec, cluster: Cluster) -> Config:
    """The configuration, with the step that the run asks for shared out among the copies of the model."""
    config = config_of(run)
    copies = checks.data_parallel(config, runs.machine(run, cluster))
    share = batches.share(run, config.number(*_MICRO), copies)
    if share is None:
        return config
    sizes = {"step_scheduler": {"global_batch_size": run.train.global_batch_size, _MICRO[1]: share.micro}}
    settings = over(_options(run).settings, overrides.values(_options(run).overrides))
    return merged(NAME, config.files, over(settings, sizes))


def _model(run: RunSpec, config: Config, configs: Configs) -> Mapping[str, Any] | None:
    """The model's `config.json`: the file that the run names (JSON is YAML), or that of its asset."""
    name = _options(run).model_config
    if name:
        return read(run.texts.get(name, ""), name, NAME).data
    words = " ".join(value for _, value in leaves(config.table("model")) if isinstance(value, str))
    named = re.findall(r"\{assets\.([\w-]+)\}", words)
    return next((configs[asset] for asset in named if asset in configs), None)


def _options(run: RunSpec) -> Options:
    return run.train.options if isinstance(run.train.options, Options) else Options()


def _decided(run: RunSpec, config: Config) -> dict[str, Any]:
    """The resolved values: numbers as numbers, one folder for a run, no launcher of its own."""
    values = {k: v for k, v in deepcopy(config.data).items() if k not in checks.LAUNCHERS}
    for path, trap in config.traps():
        if trap.kind == "number":
            table: Any = values
            for part in path[:-1]:
                table = table[part]
            table[path[-1]] = float(number(trap.word))
    folder: dict[str, Any] = {"checkpoint_dir": CHECKPOINTS}
    decided: dict[str, Any] = {"checkpoint": {"enabled": True, **config.table("checkpoint"), **folder}}
    if not checks.recipe(config) and not _options(run).program:
        decided["recipe"] = {"_target_": checks.RECIPE}
    return over(values, decided)


def _models(config: Config, run: RunSpec) -> list[str]:
    """Every name of the model: what the file says, and the origin of an asset that it names."""
    names = [value for _, value in leaves(config.table("model")) if isinstance(value, str)]
    for name in re.findall(r"\{assets\.([\w-]+)\}", " ".join(names)):
        asset = run.assets.get(name)
        names += [asset.hub, asset.path] if asset else []
    return names


def _since_05(run: RunSpec) -> bool | None:
    """Whether the run's packages pin a version since 0.5; None where nobody says."""
    requirements = " ".join(package.requirement for package in run.environment.packages)
    match = re.search(r"nemo[-_]automodel[^ ]*[=>]=\s*(\d+)\.(\d+)", requirements)
    return (int(match[1]), int(match[2])) >= (0, 5) if match else None
