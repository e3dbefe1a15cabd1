"""`neox`: pretraining and post-training with GPT-NeoX, from its own repository and its own YAML.

`config` names the files beside the run file; `[train.neox.settings]` has the same keys and lies over
them, or stands alone. One resolved file is written for each run; checkpoints go to the run's own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from hpctrain.plugin import (
    Cluster,
    Cmd,
    Code,
    ConfigError,
    File,
    Join,
    Layer,
    Layout,
    Pattern,
    Pin,
    Plan,
    Problem,
    Ranks,
    Rule,
    RunSpec,
    Stack,
    Train,
    Var,
    Word,
    hookimpl,
)
from hpctrain.toolbox import pinned_commit
from hpctrain_plugins.trainers import batches, caches, ranks, starts, tracker
from hpctrain_plugins.trainers.command import filled as placed
from hpctrain_plugins.trainers.external import deep, runs, starting
from hpctrain_plugins.trainers.external.config import Config, Fault, Machine
from hpctrain_plugins.trainers.external.places import (
    CHECKPOINTS,
    asset_faults,
    relative_faults,
    shared_folder,
)
from hpctrain_plugins.trainers.external.resolved import filled
from hpctrain_plugins.trainers.neox import begin, checks, closure, compiled, data, files, start
from hpctrain_plugins.trainers.neox.batch import MICRO, STEPS, TRAIN, data_parallel
from hpctrain_plugins.trainers.neox.rules import RULES
from hpctrain_plugins.trainers.neox.size import HFU_TO_MFU, numbers
from hpctrain_plugins.trainers.yaml_file import Path, Yaml, read

HPCTRAIN_API = 1

NAME = "neox"
FILE = "neox.yml"
UPSTREAM = "EleutherAI/gpt-neox"
CHECKOUT = runs.Checkout(
    f"https://github.com/{UPSTREAM}",
    "ea7aefd8f8e183256992d9fede4d7c71a46d67a5",
)
"""Of 2026-05-19; the Isambard document trains with the fork GeodesicResearch/geodesic-gpt-neox."""
STACKS = {
    "2026-11": Stack(
        packages=(
            *("torch>=2.4", "transformers==5.23.0", "sentencepiece==0.2.3", "tiktoken==0.14.0", "numpy"),
            *("tokenizers", "packaging", "pyyaml", "requests==2.34.2", "einops==0.8.2"),
            *("pybind11==3.1.0", "ninja==1.13.2", "setuptools<80"),
        ),
        compile=("deepspeed==0.19.8",),
    )
}
"""Seen with CHECKOUT and torch 2.13 on a CPU: what trains is imported, its data's helpers compile, and
NeoXArgs judges files. NeoX imports `packaging` from pkg_resources, which was seen to
work with setuptools 69.5, 75.8, 79.0, 80.9 and 81.0, and not with 70.3 and 82.0. flash-attn is the machine's.
"""
LAUNCHER = frozenset(
    {
        *("launcher", "deepspeed_slurm", "deepspeed_mpi", "hostfile", "include", "exclude", "no_ssh_check"),
        *("num_nodes", "num_gpus", "master_addr", "master_port", "account", "comment", "force_multi"),
    }
)
"""How NeoX would start ranks elsewhere; they run already when it reads its file."""
_PROGRESS = (
    r"(?:samples/sec: (?P<tokens_per_s>[\d.]+) \| )?iteration\s+(?P<step>\d+)/\s*\d+ \|"
    r"(?:.*? learning rate: (?P<lr>\S+) \|)?"
    r"(?:.*? approx flops per GPU: (?P<tflops_per_gpu>[\d.]+)TFLOPS \|)?"
    r".*? lm_loss: (?P<loss>\S+)"
)


@attrs.frozen(kw_only=True)
class Options:
    """GPT-NeoX with your YAML, checked before the queue and resolved into one file for a run."""

    config: tuple[str, ...] = attrs.field(default=(), metadata={"input": True})
    """Your NeoX files, beside the run file; a key may stand in one of them only."""
    deep: bool = False
    """Let the trainer's own code read the resolved file in a short job, before the nodes with GPUs."""
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys of the same files that lie over them, or stand alone."""


@hookimpl
def train_command(run: RunSpec, cluster: Cluster, assets: Mapping[str, Word], pins: tuple[Pin, ...]) -> Train:
    """`train.py` in every rank, with one resolved file, in a copy of the checkout with what it compiles."""
    config = _config(documents(run), run, cluster)
    step = Join(Var("HPC_RUN"), "/steps/train/")
    code = run.code or CHECKOUT.code
    values = {key: value for key, value in config.data.items() if key not in LAUNCHER} | _decided(run)
    if code.git:  # NeoX asks git, and the copy that it starts from is no repository
        values["git_hash"] = pinned_commit(pins, code.git, code.rev)
    world = ranks.world(run, cluster)
    beginning = begin.of_run(run, config)
    layout = Layout(format=NAME, name=begin.NAME, complete=f"configs/{FILE}", pointer="latest")
    resolved = starting.configurations(
        FILE,
        filled(values, lambda text: placed(text, run, cluster, assets)),
        keys=begin.keys(config),
        layout=layout,
        start=starts.word(beginning.folder, assets),
        first=beginning.settings,
        needs=beginning.needs,
    )
    build = compiled.of(run, cluster, config, (code, assets[runs.ORIGIN]), pins)
    validated = deep.steps(NAME, resolved.files[-1], world, assets) if _options(run).deep else ()
    return Train(
        argv=("python", Join(step, start.FILE), Join(step, FILE)),
        layer=Layer(
            env=(*ranks.PER_GPU, *runs.ENV, *caches.env(cluster), *tracker.mode(run, cluster, used=False)),
            job=(*caches.job(cluster), *resolved.job),
            task=runs.entered(assets) if build.is_shared else (Cmd.of("cd", build.folder),),
            binds=resolved.binds,
            files=(*resolved.files, File(path=start.FILE, body=(start.SOURCE,))),
        ),
        ranks=Ranks.PER_GPU,
        checkpoints=layout,
        start=starts.word(starting.text_of(run, config, begin.keys(config)), assets),
        progress=(progress(config),),
        numbers=numbers(config, runs.machine(run, cluster)),
        before=(build.step, *validated),
        code_from=build.folder if build.is_shared else None,
    )


@hookimpl
def checkout() -> Code:
    """NeoX's repository, where the run file names no other."""
    return CHECKOUT.code


def progress(config: Config) -> Pattern:
    """NeoX prints rows a second, and HFU where activations are recomputed."""
    hardware = HFU_TO_MFU if config.get("checkpoint_activations") else 1.0
    rows = float(config.number("seq_length", default=1))
    return Pattern(regex=_PROGRESS, scale={"tokens_per_s": rows, "tflops_per_gpu": hardware})


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
    """What is wrong with the configuration on these nodes, before anything is written."""
    if plan.train is None:
        return
    config_files = documents(run)
    config = _config(config_files, run, cluster)
    upstream = run.code is None or UPSTREAM.lower() in run.code.git.lower()
    for fault in (
        *_faults(config_files, config, runs.machine(run, cluster), upstream=upstream),
        *asset_faults(config, run),
        *shared_folder(config, ("save",)),
        *relative_faults(config, _paths(fatal=True), fatal=True),
        *starting.idle_faults(run, config, begin.keys(config)),
    ):
        yield config.problem(fault)
    yield from batches.problems(run, data_parallel(config, runs.machine(run, cluster)))
    yield from starting.problems(run, config, begin.keys(config))
    yield from (problem for file in config_files for problem in file.problems)
    yield from runs.checkout_problems(run, CHECKOUT)
    yield from closure.problems(run, plan, config)
    yield from runs.counted_problems(run, NAME, "checkpoint_factor")


@hookimpl
def check_config(files: Mapping[str, str], gpus: int, nodes: int) -> Iterable[Problem]:
    """The same for bare files, without a run."""
    return _bare([read(text, name, NAME) for name, text in files.items()], Machine(gpus=gpus, nodes=nodes))


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures of this trainer."""
    return RULES


def documents(run: RunSpec) -> tuple[Yaml, ...]:
    """The run's NeoX files; ConfigError when one is no YAML or there is nothing at all."""
    options = _options(run)
    if not options.config and not options.settings:
        raise ConfigError.of(
            "trainer-missing",
            "neox has no configuration",
            where="train.neox.config",
            hint='[train.neox]\nconfig = ["model.yml"]',
        )
    return runs.files_of(run, options.config, NAME)


def _bare(config_files: list[Yaml], machine: Machine) -> Iterable[Problem]:
    config = files.config_of(config_files, {})
    relative = relative_faults(config, _paths(fatal=False), fatal=False)
    for fault in (*_faults(tuple(config_files), config, machine, upstream=True), *relative):
        yield config.problem(fault)
    yield from (problem for file in config_files for problem in file.problems)


def _faults(
    config_files: tuple[Yaml, ...], config: Config, machine: Machine, *, upstream: bool
) -> list[Fault]:
    return [*files.faults(config_files), *checks.faults(config, machine, upstream=upstream)]


def _options(run: RunSpec) -> Options:
    return run.train.options if isinstance(run.train.options, Options) else Options()


def _config(config_files: tuple[Yaml, ...], run: RunSpec, cluster: Cluster) -> Config:
    """The run's configuration, with its step shared out among the copies of the model."""
    settings = _options(run).settings
    config = files.config_of(config_files, settings)
    share = batches.share(run, config.number(MICRO), data_parallel(config, runs.machine(run, cluster)))
    if share is None:
        return config
    sizes = {TRAIN: run.train.global_batch_size, MICRO: share.micro, STEPS: share.passes}
    return files.config_of(config_files, {**settings, **sizes})


def _decided(run: RunSpec) -> dict[str, Any]:
    """What the plan decides: where checkpoints go, what to go on from, and that ranks run already."""
    return {"save": CHECKPOINTS, "load": runs.own_folder(run), "deepspeed_slurm": False}


def _paths(*, fatal: bool) -> dict[Path, str]:
    keys: dict[Path, str] = {(key,): "{assets.dataset}/…" for key in data.path_keys()}
    keys |= {(key,): "{assets.tokenizer}/…" for key in ("vocab_file", "merge_file")}
    return keys if fatal else keys | {("save",): "/path", ("load",): "/path"}
