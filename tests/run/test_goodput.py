"""Where the time of attempts went, by the times of their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.outcome.goodput import attempts, goodput
from hpctrain.run.outcome.spent import JobSpan


def span(began: float, ended: float, job: str = "7", **fields: Any) -> JobSpan:
    return JobSpan(**{"step": "train", "job": job, "nodes": 2, "began": began, "ended": ended, **fields})


def rows(began: float, first: int, last: int, seconds: float = 10.0) -> list[dict[str, Any]]:
    """A row a step."""
    return [
        {"time": began + seconds * at, "step": step, "loss": 1.0}
        for at, step in enumerate(range(first, last + 1))
    ]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (tmp_path / "steps/train").mkdir(parents=True)
    return RunDirectory(tmp_path)


def test_steps_that_are_done_again_are_no_progress(run: RunDirectory) -> None:
    spans = [span(0, 1000, "7", code=75), span(2000, 2500, "8", code=0)]
    written = [*rows(100, 1, 80), *rows(2050, 61, 100)]
    first, second = attempts(run, spans, written)
    assert (first.first_step, first.last_step, first.ended_by) == (1, 80, "saved")
    assert (first.startup_s, first.kept_s, first.repeated_s, first.rest_s) == (100, 590, 200, 110)
    assert (second.startup_s, second.kept_s, second.repeated_s, second.rest_s) == (50, 390, 0, 60)
    assert goodput([first, second]) == pytest.approx((590 + 390) / 1500)


def test_an_attempt_without_a_row_trained_nothing(run: RunDirectory) -> None:
    found = attempts(run, [span(0, 500, code=1), span(1000, 1500, "8", is_running=True)], rows(1100, 1, 20))
    assert [(a.ended_by, a.kept_s) for a in found] == [("exit code 1", None), ("it runs", 190)]
    assert goodput(found) == pytest.approx(0.19)
    assert goodput(found[:1]) is None
    assert attempts(run, [span(0, 9, step="export")], []) == []


def test_rows_without_a_time_tell_nothing_of_it(run: RunDirectory) -> None:
    (only,) = attempts(
        run, [span(0, 500)], [{"step": 1, "loss": 2.0}, {"time": "noon", "step": 2, "loss": 1.0}]
    )
    assert only.startup_s is None
    assert only.ended_by == "left no word"


def test_a_chain_says_why_each_attempt_ended(run: RunDirectory) -> None:
    event = {"v": 1, "event": "ended", "job": "7", "cause": "node fault", "at": 500}
    (run.path / "steps/train/attempts.jsonl").write_text(json.dumps(event) + "\n")
    found = attempts(run, [span(0, 500, code=1), span(600, 700, "8", code=0)], [])
    assert [attempt.ended_by for attempt in found] == ["node fault", "finished"]
