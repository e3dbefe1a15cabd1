"""Runs beside each other: `metrics A B` by step, `diff A B` by setting."""

from __future__ import annotations

import pytest

from tests.e2e.product import Product, small

FIRST = r'printf "{\"step\":%d,\"loss\":%d.5}\n" 1 3 2 2 > "$HPC_RUN/metrics.jsonl"; '
FIRST += r'printf "{\"step\":2,\"eval_loss\":2.25}\n" >> "$HPC_RUN/metrics.jsonl"'
SECOND = r'printf "{\"step\":%d,\"loss\":%d.25}\n" 1 4 3 1 > "$HPC_RUN/metrics.jsonl"'


@pytest.fixture
def pair(here: Product) -> Product:
    """A user with two runs of two programs, the second with `--set`."""
    here.write(small(FIRST))
    here("submit", "--wait")
    here.write(small(SECOND))
    here("submit", "--wait", "--set", "resources.time=6m", "--set", 'env.LR="7e-5"')
    return here


def test_columns_of_runs_stand_side_by_side(pair: Product) -> None:
    shown = pair("metrics", "small/1", "small/2").stdout
    assert "loss of small/1" in shown
    table = shown[shown.index("STEP") :].splitlines()
    assert table[0].split("  ") == [
        "STEP", "LOSS small/1", "LOSS small/2", "EVAL small/1", "EVAL small/2",
    ]  # fmt: skip
    assert [line.split() for line in table[1:]] == [
        ["1", "3.500", "4.250", "-", "-"],
        ["2", "2.500", "-", "2.250", "-"],
        ["3", "-", "1.250", "-", "-"],
    ]
    runs = pair.json("metrics", "small/1", "small/2")["runs"]
    assert [(run["run"], len(run["rows"])) for run in runs] == [("small/1", 3), ("small/2", 2)]
    assert pair.json("metrics", "small/1")["run"] == "small/1"


def test_losses_of_runs_are_drawn_together(pair: Product) -> None:
    assert "wrote both.svg" in pair("metrics", "small/1", "small/2", "--picture", "both.svg").stderr
    drawn = (pair.folder / "both.svg").read_text()
    assert "small/1" in drawn
    assert "small/2" in drawn
    said = pair("metrics", *["small/1"] * 3, "small/2", "--picture", "both.svg", code=None).stderr
    assert "wrote both.svg" in said  # a run named twice is one


def test_what_two_runs_were_asked_after_every_layer(pair: Product) -> None:
    told = pair.json("diff", "small/1", "small/2")
    assert told["runs"] == ["small/1", "small/2"]
    assert set(told["rows"]) == {"digest", "resources.time", "env.LR", "train.command.argv"}
    assert told["rows"]["resources.time"] == ["5m", "6m"]
    assert told["rows"]["env.LR"] == ["-", "7e-5"]
    assert "train.command.ranks" in told["same"]
    assert told["results"]["loss"] == ["2.500", "1.250"]
    assert told["results"]["lowest loss"] == ["2.500 at 2", "1.250 at 3"]
    assert told["results"]["eval_loss"] == ["2.250", "-"]
    shown = pair("diff", "small/1", "small/2").stdout
    assert "resources.time" in shown
    assert "node-hours" in shown
    assert pair.json("diff", "small/1", "small/1")["equal"] is True


def test_options_of_a_plan_do_not_go_with_runs(pair: Product) -> None:
    said = pair("diff", "small/1", "small/2", "--on", "local", code=2).stderr
    assert "--on goes with one run file, not with runs" in said
    assert 'no run "nope' in pair("diff", "small/1", "nope", code=2).stderr.replace("'", '"')
