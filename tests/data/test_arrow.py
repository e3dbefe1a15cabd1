"""`use = "arrow"` in a run file: the step, its key, what is refused; and the step carried out."""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpctrain.defaults import PLUGINS
from hpctrain.errors import ConfigError
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.model.plan import Plan
from hpctrain.model.run import Asset, Environment, RunSpec, TrainSpec
from hpctrain.model.step import Need
from hpctrain.plan import planner
from hpctrain_plugins.data import arrow
from tests.conftest import needs
from tests.trainers.plans import cluster

HUB = Asset(hub="mlabonne/guanaco-llama2-1k", kind="dataset")


def plan(options: dict[str, Any], hub: Asset = HUB) -> Plan:
    hooks = Hooks()
    for name in PLUGINS:
        hooks.add(Entry("core", name, name, "hpctrain", "1"), importlib.import_module(name))
    hooks.add(Entry("data", "arrow", "m", "d", "1"), arrow)
    assets = {"dataset": hub, "rows": Asset(use="arrow", options=options)}
    run = RunSpec(name="r", cluster="toy", assets=assets, environment=Environment(), train=TrainSpec())
    return planner.make(run, cluster(), (), hooks.call)


def key(options: dict[str, Any], hub: Asset = HUB) -> str:
    (step,) = [s.step for s in plan(options, hub).steps if s.name == "rows"]
    assert step.inside
    assert Need.NETWORK not in step.needs
    assert step.makes is not None
    return step.makes.key


def test_the_key_is_what_is_read_and_how_it_is_called() -> None:
    one = key({"from": "dataset"})
    assert one == key({"from": "dataset", "name": "rows"})  # called after the asset
    others = {
        key({"from": "dataset", "name": "guanaco"}),
        key({"from": "dataset", "subset": "small"}),
        key({"from": "dataset"}, Asset(hub="mlabonne/another", kind="dataset")),
    }
    assert len({one, *others}) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "from names no asset; those that stand before it: dataset"),
        ({"from": "data"}, "data is not an asset; those that stand before it: dataset"),
        ({"from": "dataset", "split": "train"}, 'no option "split"; there are from, name, subset'),
        ({"from": "dataset", "name": "../up"}, "cannot start a file name"),
        ({"from": "dataset", "subset": 3}, "subset is a text"),
    ],
)
def test_what_is_refused(options: dict[str, Any], said: str) -> None:
    (problem,) = [p for p in plan(options).problems if p.code == "data-options"]
    assert said in problem.message
    assert problem.fatal
    assert problem.where.startswith("assets.rows.options.")


@pytest.mark.torch
def test_every_split_becomes_a_file_that_datasets_reads(tmp_path: Path) -> None:
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with datasets")
    (tmp_path / "snapshot").mkdir()
    for split, rows in (("train", 3), ("test", 2)):
        lines = "".join(f'{{"text": "{split} {n}"}}\n' for n in range(rows))
        (tmp_path / f"snapshot/{split}.jsonl").write_text(lines)
    (tmp_path / "arrow.py").write_text(arrow.SCRIPT)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [python, *words], env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = tmp_path / "made"
    said = run(str(tmp_path / "arrow.py"), str(tmp_path / "snapshot"), "small", str(made))
    assert "small-train.arrow: 3 rows of text" in said
    assert sorted(p.name for p in made.iterdir()) == ["small-test.arrow", "small-train.arrow"]
    code = "import datasets, sys; rows = datasets.Dataset.from_file(sys.argv[1]); print(rows['text'][2])"
    assert run("-c", code, str(made / "small-train.arrow")) == "train 2\n"


def test_a_hook_of_another_asset_is_not_answered() -> None:
    assert arrow.prepare_data("dataset", HUB, {}) is None
    with pytest.raises(ConfigError):
        arrow.prepare_data("rows", Asset(use="arrow"), {})
