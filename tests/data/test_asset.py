"""`use = "tokens"` in a run file: the step, its key, what is refused; and the step carried out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.defaults import PLUGINS
from hpctrain.errors import ConfigError
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.run import Asset, Environment, RunSpec, TrainSpec
from hpctrain.model.step import Step
from hpctrain.model.words import Join, Loc
from hpctrain.plan import planner
from hpctrain.render import shell
from hpctrain.run.prepare import jobzip
from hpctrain_plugins.data import tokens
from tests.data import reference
from tests.trainers.plans import cluster

HUB = Asset(hub="cais/wmdp-corpora", kind="dataset")
MODEL = Asset(hub="org/tokenizer")
OPTIONS: dict[str, Any] = {
    "inputs": ["corpus:train"],
    "tokenizer": "tok",
    "compat": "megatron",
    "no_eod": True,
    "only_last": False,
}


def site() -> Cluster:
    """A toy with room for assets and data."""
    toy = cluster()
    return attrs.evolve(toy, storage=dict.fromkeys(("runs", "assets", "data"), toy.storage["runs"]))


def plan(options: dict[str, Any], **assets: Asset) -> Plan:
    import importlib

    hooks = Hooks()
    for name in PLUGINS:
        hooks.add(Entry("core", name, name, "hpctrain", "1"), importlib.import_module(name))
    hooks.add(Entry("data", "tokens", "m", "d", "1"), tokens)
    given = assets or {"corpus": HUB, "tok": MODEL}
    made = {**given, "set": Asset(use="tokens", options=options)}
    run = RunSpec(name="r", cluster="toy", assets=made, environment=Environment(), train=TrainSpec())
    return planner.make(run, site(), (), hooks.call)


def step(options: dict[str, Any] = OPTIONS, **assets: Asset) -> Step:
    made = plan(options, **assets)
    assert not [p for p in made.problems if p.fatal]
    return made.steps[-1].step


def test_the_step() -> None:
    made = step()
    assert (made.name, made.inside, made.code) == ("set", True, ("hpctrain_tokens",))
    assert made.makes is not None
    assert made.makes.role == "data"
    argv = list(made.commands[0].argv)  # type: ignore[union-attr]
    assert argv[:4] == ["python", "-m", "hpctrain_tokens", "prepare"]
    assert isinstance(argv[4], Join)
    assert isinstance(argv[4].parts[0], Loc)
    assert argv[4].parts[1] == ":train"
    assert argv[argv.index("--work") + 1] == Loc("data", f".partial/{made.makes.filename}")
    assert argv[-5:-2] == ["--compat", "megatron", "--no-eod"]
    assert isinstance(argv[-1], Loc)


def test_it_waits_for_nothing_that_it_does_not_read() -> None:
    assert [s.step.name for s in plan(OPTIONS).steps] == ["corpus", "tok", "set"]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"only_last": True}, False),
        ({"eod": "<x>"}, False),
        ({"inputs": ["corpus:test"]}, False),
    ],
)
def test_the_key_is_of_what_is_read(change: dict[str, Any], same: bool) -> None:
    one, two = step().makes, step({**OPTIONS, **change}).makes
    assert one is not None
    assert two is not None
    assert (one.key == two.key) is same


def test_the_key_follows_the_assets() -> None:
    other = step(corpus=attrs.evolve(HUB, revision="a" * 40), tok=MODEL).makes
    assert other is not None
    assert other.key != step().makes.key  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "where", "said"),
    [
        ({}, "inputs", "inputs names no asset"),
        ({**OPTIONS, "inputs": "corpus"}, "inputs", "inputs names no asset"),
        (
            {**OPTIONS, "inputs": ["corpsu"]},
            "inputs",
            "is not an asset; those that stand before it: corpus, tok",
        ),
        ({**OPTIONS, "tokenizer": "none"}, "tokenizer", "none is not an asset"),
        ({**OPTIONS, "compat": "neo"}, "", "invalid choice"),
        ({**OPTIONS, "colour": 1}, "", "unrecognized arguments"),
        ({**OPTIONS, "workers": 4}, "workers", "workers is set by the plan"),
    ],
)
def test_what_is_refused(options: dict[str, Any], where: str, said: str) -> None:
    found = [p for p in plan(options).problems if p.code == "data-options"]
    assert len(found) == 1
    assert said in found[0].message
    assert found[0].where == f"assets.set.options.{where}".rstrip(".")


def test_other_assets_are_others() -> None:
    assert tokens.prepare_data("x", HUB, cluster(), {}) is None


def test_an_asset_after_it_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="those that stand before it: none"):
        tokens.prepare_data("x", Asset(use="tokens", options=OPTIONS), cluster(), {})


def carried_out(root: Path, made: Step, name: str) -> subprocess.CompletedProcess[str]:
    """The step's command as bash runs it, with the packages from the zip that travels."""
    zipped = root / "job.zip"
    zipped.write_bytes(jobzip.build(made.code).data)
    binding = Binding(roots={"data": str(root / "data"), "assets": str(root / "assets")}, user="ada")
    line = shell.line(made.commands[0], binding)
    program = f'python() {{ {sys.executable} "$@"; }}\n{line}'
    env = {**os.environ, "PYTHONPATH": str(zipped), "WORK": str(root / "data" / name)}
    argv = ["bash", "-c", program]
    return subprocess.run(argv, env=env, capture_output=True, text=True, cwd=root, timeout=120)


def test_the_step_carried_out(tmp_path: Path, tokenizer: Path) -> None:
    """From the zip alone, with a folder as the dataset and one as the tokenizer."""
    folder = tmp_path / "rows"
    folder.mkdir()
    reference.jsonl(folder / "train.jsonl", [{"text": "one"}, {"text": "two"}])
    options = {"inputs": ["corpus:train"], "tokenizer": "tok"}
    made = step(options, corpus=Asset(path=str(folder)), tok=Asset(path=str(tokenizer)))
    done = carried_out(tmp_path, made, "result")
    assert done.returncode == 0, done.stderr
    found = reference.read(tmp_path / "data/result/set_text_document")
    assert found == reference.tokens(tokenizer, ["one", "two"])
    assert not list((tmp_path / "data/.partial").iterdir())
