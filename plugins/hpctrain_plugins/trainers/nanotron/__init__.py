"""`nanotron`: pretraining with Hugging Face's nanotron, from its own repository and its own YAML.

`config` names the YAML beside the run file; `[train.nanotron.settings]` has the same keys and lies over
it, or stands alone. One resolved file is written for each run; checkpoints go to the run's own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from hpctrain.plugin import (
    Cluster,
    Code,
    ConfigError,
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
    Train,
    Var,
    Word,
    hookimpl,
)
from hpctrain_plugins.trainers import batches, caches, ranks, starts, tracker
from hpctrain_plugins.trainers.command import filled as placed
from hpctrain_plugins.trainers.external import deep, runs, starting
from hpctrain_plugins.trainers.external.config import Config, Machine, merged, over
from hpctrain_plugins.trainers.external.places import (
    CHECKPOINTS,
    asset_faults,
    hub_faults,
    relative_faults,
    shared_folder,
)
from hpctrain_plugins.trainers.external.resolved import filled
from hpctrain_plugins.trainers.nanotron import checks
from hpctrain_plugins.trainers.nanotron.rules import RULES
from hpctrain_plugins.trainers.nanotron.size import numbers
from hpctrain_plugins.trainers.yaml_file import Path, read

HPCTRAIN_API = 1

NAME = "nanotron"
FILE = "nanotron.yaml"
_LOADED = ("hf_dataset_or_datasets", "tokenizer_name_or_path", "tokenizer_name")
CHECKOUT = runs.Checkout(
    "https://github.com/huggingface/nanotron",
    checks.BEFORE_LOCAL_RANK[0],
)
"""The revision that CSCS documents; it also starts on 2 nodes with 4 GPUs each."""
STACKS = {
    "2026-11": Stack(
        packages=(
            *("torch>=2.1", "dacite==1.9.2", "transformers==5.23.0", "datasets==5.2.0", "safetensors"),
            *("numpy", "packaging", "pyyaml", "tqdm"),
        )
    )
}
"""Seen with CHECKOUT and torch 2.13 on a CPU: run_train.py imports all it needs, and the loader judges files.

flash-attn, which its models import when they are built, is the machine's: of its image, or `compile`.
"""
ENV = EnvVar(name="CUDA_DEVICE_MAX_CONNECTIONS", value="1", why="nanotron asserts it: order of its streams")
LAYOUT = Layout(format=NAME, name=r"(?P<step>\d+)", complete="model_config.json", pointer="latest.txt")
START = starting.StartKeys(
    load=("checkpoints", "resume_checkpoint_path"),
    save=("checkpoints", "checkpoints_path"),
    first_only={("checkpoints", "load_optimizer"): True, ("checkpoints", "load_lr_scheduler"): True},
)
"""nanotron's own keys of where training starts, with what it does where they are missing."""
_MICRO, _PASSES = ("tokens", "micro_batch_size"), ("tokens", "batch_accumulation_per_replica")
PROGRESS = Pattern(
    regex=r"iteration: (?P<step>\d+) / \d+ (?=(?:.*? \| grad_norm: (?P<grad_norm>\S+))?)"
    r"\| consumed_tokens: (?P<tokens>\S+).*? \| tokens_per_sec: (?P<tokens_per_s>\S+)"
    r".*? \| lm_loss: (?P<loss>\S+) \| lr: (?P<lr>\S+)"
    r" \| model_tflops_per_gpu: (?P<tflops_per_gpu>\S+)"
)
"""Its numbers have three digits and end in K, M, B, T, P or E; grad_norm comes before lm_loss or last."""


@attrs.frozen(kw_only=True)
class Options:
    """nanotron with your YAML, checked before the queue and resolved into one file for a run."""

    config: str = attrs.field(default="", metadata={"input": True})
    """Your nanotron YAML, beside the run file."""
    deep: bool = False
    """Let the trainer's own code read the resolved file in a short job, before the nodes with GPUs."""
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys of the same YAML that lie over it, or stand alone."""


@hookimpl
def train_command(run: RunSpec, cluster: Cluster, assets: Mapping[str, Word]) -> Train:
    """`run_train.py` under torchrun on every node, with one resolved YAML."""
    config = config_of(run)
    values = over(config.data, _decided(run))
    text = starting.text_of(run, config, START)
    begin = starts.word(text, assets)
    resolved = starting.configurations(
        FILE,
        filled(values, lambda text: placed(text, run, cluster, assets)),
        keys=START,
        layout=LAYOUT,
        start=begin,
        needs=(_last_written(text),),
    )
    source, gpus = _source(assets), ranks.world(run, cluster)
    return Train(
        argv=(
            *ranks.torchrun(max(1, ranks.gpus_per_node(run, cluster))),
            *("run_train.py", "--config-file", Join(Var("HPC_RUN"), f"/steps/train/{FILE}")),
        ),
        layer=Layer(
            env=(*runs.ENV, *caches.env(cluster), *tracker.mode(run, cluster, used=False), ENV, *source),
            job=(*caches.job(cluster), *resolved.job),
            task=runs.entered(assets),
            binds=resolved.binds,
            files=resolved.files,
        ),
        ranks=Ranks.PER_NODE,
        checkpoints=LAYOUT,
        start=begin,
        progress=(PROGRESS,),
        numbers=numbers(config),
        before=deep.steps(NAME, resolved.files[-1], gpus, assets, source) if _options(run).deep else (),
    )


@hookimpl
def checkout() -> Code:
    """nanotron's repository, where the run file names no other."""
    return CHECKOUT.code


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
    """What is wrong with the configuration on these nodes, before anything is written."""
    if plan.train is None:
        return
    config = config_of(run)
    for fault in checks.faults(config, runs.machine(run, cluster), runs.revisions(run, plan, CHECKOUT)):
        yield config.problem(fault)
    folder = ("checkpoints", "checkpoints_path")
    for fault in (
        *asset_faults(config, run),
        *hub_faults(config, _LOADED),
        *shared_folder(config, folder),
        *_paths(config, fatal=True),
        *starting.idle_faults(run, config, START),
    ):
        yield config.problem(fault)
    yield from starting.problems(run, config, START)
    yield from batches.problems(run, checks.copies(config))
    yield from (problem for file in config.files for problem in file.problems)
    yield from runs.checkout_problems(run, CHECKOUT)
    yield from runs.counted_problems(run, NAME, "checkpoint_interval")


@hookimpl
def check_config(files: Mapping[str, str], gpus: int, nodes: int) -> Iterable[Problem]:
    """The same for bare files, without a run."""
    documents = [read(text, name, NAME) for name, text in files.items()]
    if len(documents) != 1:
        raise ConfigError.of("trainer-conflict", "nanotron reads one file", hint="name one file")
    config = merged(NAME, documents, {})
    for fault in (*checks.faults(config, Machine(gpus=gpus, nodes=nodes)), *_paths(config, fatal=False)):
        yield config.problem(fault)
    yield from documents[0].problems


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures of this trainer."""
    return RULES


def config_of(run: RunSpec) -> Config:
    """The run's configuration; ConfigError when the file is no YAML or there is none."""
    options = _options(run)
    documents = runs.one_file(run, options.config, NAME, or_settings=options.settings, example="config.yaml")
    config = merged(NAME, documents, options.settings)
    share = batches.share(run, config.number(*_MICRO), checks.copies(config))
    if share is None:
        return config
    sizes = {"tokens": {_MICRO[1]: share.micro, _PASSES[1]: share.passes}}
    return merged(NAME, documents, over(options.settings, sizes))


def _options(run: RunSpec) -> Options:
    return run.train.options if isinstance(run.train.options, Options) else Options()


def _source(assets: Mapping[str, Word]) -> tuple[EnvVar, ...]:
    """The package itself lies in `src` of its repository."""
    if runs.CODE not in assets:
        return ()
    why = "nanotron itself, at the revision that the run names"
    value = Join(assets[runs.CODE], "/src")
    return (EnvVar(name="PYTHONPATH", value=value, how=How.PREPEND, why=why),)


def _decided(run: RunSpec) -> dict[str, Any]:
    """What the plan decides: where checkpoints go, and what to go on from."""
    newest = runs.own_folder(run)
    return {"checkpoints": {"checkpoints_path": CHECKPOINTS, "resume_checkpoint_path": newest}}


def _last_written(start: str) -> str:
    """The file that says a folder can be started from: of one checkpoint, or of several."""
    is_checkpoint = start.rpartition("/")[2].isdigit()
    return LAYOUT.complete if is_checkpoint else "latest.txt"


def _paths(config: Config, *, fatal: bool) -> Iterable[Any]:
    stages = config.get("data_stages")
    count = len(stages) if isinstance(stages, list) else 0
    keys: dict[Path, str] = {
        ("data_stages", n, "data", "dataset", key): "{assets.dataset}"
        for n in range(count)
        for key in ("dataset_folder", "dataset_read_path")
    }
    if not fatal:
        folder = {"checkpoints_path": "/path", "resume_checkpoint_path": "/path"}
        keys |= {("checkpoints", key): value for key, value in folder.items()}
    return relative_faults(config, keys, fatal=fatal)
