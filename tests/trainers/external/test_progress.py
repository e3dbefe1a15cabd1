"""What a trainer prints becomes the same rows that our own trainer writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.model.train import Pattern
from hpctrain.plan.encode import encode
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.output.metrics import metrics_of
from hpctrain.run.output.progress import from_log, number
from hpctrain.runfile.reading.toml import loads
from hpctrain_job.metrics import COLUMNS, append
from hpctrain_plugins.trainers import automodel, command, nanotron, neox, trl
from tests.trainers import plans
from tests.trainers.external import runs
from tests.trainers.external.test_nanotron import LOG as NANOTRON

LOGS = Path(__file__).parents[1] / "data/metric_logs"
FILES = {
    nanotron: ("alps.yaml",),
    neox: ("isambard_model.yml", "isambard_run.yml"),
    automodel: ("leonardo.yaml",),
}
COMMON = {"time": None, "grad_norm": None, "tokens": None, "tflops_per_gpu": None, "mfu": None, "hfu": None}
FIRST: dict[str, dict[str, Any]] = {
    "trl": {
        "step": 17,
        "loss": 3.516,
        "lr": 0.0,
        "grad_norm": 1.713,
        "tokens": 12160,
        "tokens_per_s": 2015,
    },
    "nanotron": {
        "step": 10,
        "loss": 10.9,
        "lr": 1.88e-06,
        "grad_norm": 1.23,
        "tokens": 655_000.0,
        "tokens_per_s": 53_300.0,
        "tflops_per_gpu": 5.41,
        "mfu": 0.0055,
        "hfu": 0.0055,
    },
    "neox": {
        "step": 10,
        "loss": 10.87654,
        "lr": 1.875e-06,
        "tokens_per_s": pytest.approx(244.217 * 2048),
        "tflops_per_gpu": pytest.approx(334.5),
        "mfu": 0.3382,
        "hfu": 0.451,
    },
    "automodel": {
        "step": 10,
        "loss": 10.8765,
        "lr": 1.88e-06,
        "grad_norm": 1.2345,
        "tokens_per_s": 12472.87,
    },
    "command": {"step": 10, "loss": 4.1742, "lr": 3e-4, "grad_norm": 1.25, "tokens_per_s": 12_400.0},
}
"""The first row of every log."""
ITER = (
    r"iter (?P<step>\d+): loss (?P<loss>[\d.]+), lr (?P<lr>\S+), norm (?P<grad_norm>\S+), "
    r"tok/s (?P<tokens_per_s>\S+)"
)


def _planned(name: str) -> Any:
    """The trainer's own answer, with its patterns."""
    if name == "command":
        options = command.Options(argv=("python", "train.py"), metrics=ITER)
        return command.train_command(plans.run("command", options), plans.cluster(), plans.ASSETS, {})
    if name == "trl":
        return trl.train_command(plans.run("trl", trl.Options()), plans.cluster(), plans.ASSETS, {})
    module = next(m for m in FILES if name == m.NAME)
    return runs.train(module, runs.spec(module, *FILES[module]))


def _directory(tmp_path: Path, train: Any, log: str, name: str = "train.rank0.log") -> RunDirectory:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_text(log)
    (tmp_path / "plan.json").write_text(json.dumps({"train": encode(train), "peak_tflops": 989}))
    return RunDirectory(tmp_path)


@pytest.mark.parametrize("name", FIRST)
def test_a_log_becomes_rows(name: str, tmp_path: Path) -> None:
    directory = _directory(tmp_path, _planned(name), (LOGS / f"{name}.log").read_text())
    found = metrics_of(directory).rows
    trained = [row for row in found if "eval_loss" not in row]
    assert found[0] == {**COMMON, **FIRST[name]}
    assert [tuple(row) for row in trained] == [COLUMNS] * 3
    assert all(set(row) == {"time", "step", "eval_loss"} for row in found if "eval_loss" in row)
    assert len(found) == (4 if name == "automodel" else 3)


def test_every_log_says_how_it_came_about() -> None:
    said = loads((LOGS / "logs.toml").read_text())
    assert set(said) == {path.stem for path in LOGS.glob("*.log")} == set(FIRST)
    assert {row["sure"] for row in said.values()} <= {"measured", "from source"}
    assert all(row["command"] or row["sure"] == "from source" for row in said.values())
    assert all(row["by"] for row in said.values())


def test_what_the_trainer_wrote_itself_counts_more(tmp_path: Path) -> None:
    directory = _directory(tmp_path, _planned("nanotron"), (LOGS / "nanotron.log").read_text())
    append(directory.metrics, {"step": 1, "loss": 2.0})
    assert metrics_of(directory).rows == [{"step": 1, "loss": 2.0}]


def test_a_resumed_step_counts_once_and_ranks_may_share_a_log(tmp_path: Path) -> None:
    train = _planned("nanotron")
    first, again = NANOTRON.format("", ""), NANOTRON.format("", "").replace("8.91", "7.5")
    (row,) = metrics_of(_directory(tmp_path, train, f"{first}\n{again}\n", "train.log")).rows
    assert row["loss"] == 7.5


def test_a_run_without_log_or_trainer_has_no_rows(tmp_path: Path) -> None:
    assert metrics_of(_directory(tmp_path, None, "step 1")).rows == []


@pytest.mark.parametrize(
    ("said", "value"),
    [
        *(("12", 12.0), ("53.3K", 53_300.0), ("1.2M", 1.2e6), ("1e-05", 1e-05), ("3.2B", 3.2e9)),
        *(("1.087654E+01", 10.87654), ("-2.5", -2.5), ("0.5,", 0.5), ("7E", 7e18)),
        *(
            ("nan", None),
            ("inf", None),
            ("-inf", None),
            ("fast", None),
            ("1.2.3", None),
            ("", None),
            (None, None),
        ),
    ],
)
def test_numbers_as_logs_print_them(said: str | None, value: float | None) -> None:
    assert number(said) == (None if value is None else pytest.approx(value))


def test_a_pattern_of_the_command_trainer() -> None:
    pattern = Pattern(regex=r"step=(?P<step>\d+) loss=(?P<loss>\S+)(?: acc=(?P<acc>\S+))?")
    rows = list(from_log("step=1 loss=2.5\nstep=2 loss=nan\nstep=x loss=1\n", [pattern]))
    assert rows == [{"step": 1, "loss": 2.5}, {"step": 2}]
