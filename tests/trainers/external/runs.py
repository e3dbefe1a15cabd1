"""Runs of the three trainers, made by hand, and what is wrong with them."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import yaml

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Plan
from hpctrain.model.run import Asset, Code, Resources, RunSpec
from hpctrain.model.step import Pin
from hpctrain.model.train import Train
from hpctrain.model.words import Join, Loc, Var, Word
from hpctrain.render import files
from tests.trainers import plans

DATA = Path(__file__).parent / "data"
ASSETS: dict[str, Word] = {
    "model": Loc("assets", "model-1"),
    "dataset": Loc("assets", "dataset-2"),
    "tokenizer": Loc("assets", "tokenizer-3"),
    "corpus": "/projects/a5k/corpus",
    "code": Var("HPC_SOURCE"),
    ".code": Loc("assets", "git-4"),
}


def spec(module: ModuleType, *names: str, texts: dict[str, str] | None = None, **fields: Any) -> RunSpec:
    """A run of this trainer with files of data/, or with `texts` of its own."""
    found = {name: (DATA / name).read_text() for name in names} | (texts or {})
    options = fields.pop("options", {})
    config: Any = tuple(found) if module.__name__.endswith("neox") else "".join(list(found)[:1])
    values: dict[str, Any] = {
        "resources": Resources(nodes=2),
        "code": Code(git="https://github.com/org/x", rev="5f8a52b08b702e206f31f2660e4b6f22ac328c95"),
        "assets": {name: Asset(hub=f"org/{name}") for name in ASSETS if name != "code"},
        "texts": found,
    } | fields
    run = plans.run(module.__name__.rpartition(".")[2], module.Options(config=config, **options))
    return attrs.evolve(run, **{"checkpoint": attrs.evolve(run.checkpoint, every=None), **values})


def train(module: ModuleType, run: RunSpec, gpus: int = 4) -> Train:
    """What the trainer answers on nodes of so many GPUs."""
    return _hook_answer(module, run, plans.cluster(gpus))


def problems(module: ModuleType, run: RunSpec, gpus: int = 4, pins: tuple[Pin, ...] = ()) -> list[Problem]:
    """Everything that is said against a run, as the planner would collect it."""
    cluster = plans.cluster(gpus)
    try:
        answer = _hook_answer(module, run, cluster, pins)
    except ConfigError as error:
        return list(error.problems)
    return list(
        module.check_run(run, cluster, Plan(run=run, cluster=cluster, pins=pins, steps=(), train=answer))
    )


def _hook_answer(module: ModuleType, run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...] = ()) -> Train:
    """The hook with the arguments that it takes."""
    offered = {"run": run, "cluster": cluster, "assets": ASSETS, "pins": pins, "configs": {}}
    taken = signature(module.train_command).parameters
    answer: Train = module.train_command(**{name: offered[name] for name in taken})
    return answer


def codes(found: list[Problem], *, fatal: bool | None = None) -> list[str]:
    """The codes of the problems, or of those that stop or do not stop."""
    return [p.code for p in found if fatal is None or p.fatal is fatal]


def resolved(answer: Train, name: str) -> dict[str, Any]:
    """The run's own configuration file, with variables of the job as `$NAME`."""
    (file,) = [f for f in answer.layer.files if f.path == name]
    body = tuple(_said(part) for part in file.body)
    found: dict[str, Any] = yaml.safe_load(files.text(attrs.evolve(file, body=body), plans.BINDING))
    return found


def _said(word: Any) -> Any:
    if isinstance(word, Var):
        return Join(f"${word.name}")
    return Join(*map(_said, word.parts)) if isinstance(word, Join) else word


def changed(name: str, old: str, new: str) -> dict[str, str]:
    """A file of data/ with one text replaced."""
    text = (DATA / name).read_text()
    assert text.count(old) >= 1, f"{name} has no {old!r}"
    return {name: text.replace(old, new, 1)}
