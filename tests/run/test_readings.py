"""Metrics as they grow: each byte once, the newest of several attempts, any number in little memory."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.output.metrics import metrics_of
from hpctrain.run.watch import curve
from hpctrain.run.watch.readings import Readings

PLAN: dict[str, Any] = {
    "train": {
        "progress": [{"regex": r"step (?P<step>\d+) loss (?P<loss>\S+)", "scale": {}}],
        "numbers": {"steps": 900, "tokens_per_step": 1000},
    }
}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / "logs").mkdir()
    return RunDirectory(tmp_path)


def write(run: RunDirectory, *rows: Mapping[str, Any]) -> None:
    with run.metrics.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_rows_as_they_come(run: RunDirectory) -> None:
    readings = Readings(run)
    assert not readings.look()
    assert (readings.trained.step, readings.trained.steps) == (None, 900)
    write(run, {"time": 10.0, "step": 1, "loss": 3.0}, {"time": 12.0, "step": 2, "loss": 2.5})
    assert readings.look()
    trained = readings.trained
    assert (trained.step, trained.steps, trained.loss, trained.seconds_per_step) == (2, 900, 2.5, 2.0)
    assert trained.ends_at == 12.0 + 898 * 2.0
    write(
        run,
        {"time": 12.5, "step": 2, "eval_loss": 2.75},
        {"time": 14.0, "step": 3, "steps": 30, "loss": None},
    )
    assert readings.look()
    trained = readings.trained
    assert (trained.steps, trained.loss, trained.eval_loss, trained.eval_step) == (30, None, 2.75, 2)
    assert list(readings.losses.points) == [(1, 3.0), (2, 2.5)]
    assert not readings.look()


def test_an_attempt_that_goes_on_from_an_earlier_step(run: RunDirectory) -> None:
    write(run, *({"time": float(n), "step": n, "loss": 10.0 - n} for n in range(1, 6)))
    write(run, {"time": 900.0, "step": 3, "loss": 7.5}, {"time": 904.0, "step": 4, "loss": 6.5})
    readings = Readings(run)
    readings.look()
    assert list(readings.losses.points) == [(1, 9.0), (2, 8.0), (3, 7.5), (4, 6.5)]
    assert readings.trained.seconds_per_step == 4.0


def test_odd_rows_do_no_harm(run: RunDirectory) -> None:
    odd = [
        '{"step": "x", "loss": 1}',
        '{"step": 1, "loss": "x"}',
        "{",
        "[1]",
        '{"loss": 1}',
        '{"step": null, "loss": 1}',
        f'{{"step": 1, "loss": 1.5, "time": {10**400}, "steps": {10**400}}}',
    ]
    run.metrics.write_text(
        "\n".join([*odd, '{"step": 2, "loss": 1.5, "time": "yesterday", "steps": "many"}', ""])
    )
    readings = Readings(run)
    readings.look()
    assert (readings.trained.loss, readings.trained.steps) == (1.5, 900)
    assert readings.trained.at == run.metrics.stat().st_mtime


def test_a_trainer_that_only_prints(run: RunDirectory) -> None:
    log = run.log("train")
    log.write_text("begins\nstep 1 loss 3.5\nstep 2 loss 3.0\nstep 3 lo")
    readings = Readings(run)
    assert readings.look()
    assert (readings.trained.step, readings.trained.loss) == (2, 3.0)
    with log.open("a") as file:
        file.write("ss 2.5\n")
    assert readings.look()
    assert list(readings.losses.points) == [(1, 3.5), (2, 3.0), (3, 2.5)]
    write(run, {"step": 3, "loss": 2.5})
    readings.look()
    assert list(readings.losses.points) == [(3, 2.5)]


@given(st.lists(st.floats(-5, 5), max_size=60), st.integers(1, 5), st.integers(0, 70))
def test_no_spike_of_a_long_training_is_lost(values: list[float], stretch: int, cut: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve, "BINS", 8)
        losses = curve.Curve()
        series = [(n * stretch, value) for n, value in enumerate(values)]
        for step, value in series:
            losses.add(step, value)
        points = list(losses.points)
        assert len(points) <= 16
        assert points == sorted(points)
        assert set(points) <= set(series)
        for extreme in (min, max):
            assert extreme((v for _, v in points), default=0) == extreme(values, default=0)
        losses.cut(cut)
        assert all(step < cut for step, _ in losses.points)
        losses.add(cut, 9.0)
        assert losses.points[-1] == (cut, 9.0)


def test_a_short_series_is_whole_and_a_long_one_even() -> None:
    losses = curve.Curve()
    for step in range(curve.BINS):
        losses.add(step, float(step % 3))
    assert list(losses.points) == [(step, float(step % 3)) for step in range(curve.BINS)]
    for step in range(curve.BINS, 50 * curve.BINS):
        losses.add(step, float(step % 3))
    steps = [step for step, _ in losses.points]
    assert len(steps) <= 2 * curve.BINS
    assert max(b - a for a, b in itertools.pairwise(steps)) <= 2 * 64


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=6))
def test_what_is_drawn_while_it_grows_is_what_counts_in_the_end(attempts: list[tuple[int, int]]) -> None:
    """`watch` reads each row once, `metrics` all of them: both leave out the same steps."""
    written = [{"step": first + at, "loss": 1.0} for first, length in attempts for at in range(length)]
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder))
        write(run, *written)
        readings = Readings(run)
        readings.look()
        assert [step for step, _ in readings.losses.points] == [
            row["step"] for row in metrics_of(run).training
        ]
        assert readings.last["step"] == metrics_of(run).training[-1]["step"]
