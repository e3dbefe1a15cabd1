"""The one line of a run that lives: what it says, what leaves it where there is no room, clocks that tick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hpctrain.cli.show import live_line, watch_screen
from hpctrain.cli.show.watch_screen import View
from hpctrain.errors import Problem
from hpctrain.model.job import ChainState, JobState, State
from hpctrain.run.steps.poll import Answer
from hpctrain.run.steps.status import RunState, StepState, run_state
from hpctrain.run.watch.vitals import Trained, Vitals, pace, vitals
from hpctrain.ui.text import cells
from tests.ui.help import term

NOW = 1_800_000_000.0
NOTHING = Trained()
HALF_WAY = Trained(
    step=155, steps=240, loss=1.2141, eval_loss=1.3, eval_step=150, tokens_per_s=1912.3, mfu=0.3,
    at=NOW - 10, seconds_per_step=8.0, seconds_per_row=8.0,
)  # fmt: skip


def run(*steps: StepState, answer: Answer | None = None) -> RunState:
    return RunState(
        directory=Path("/x"), state=run_state(steps), steps=steps, answer=answer or Answer()
    )  # fmt: skip


def of(state: State, *, trained: Trained = NOTHING, age: float = 5, **job: Any) -> Vitals:
    found = JobState(id="7", state=state, **job)
    step = StepState(step="train", state=state, job="7", reason=found.reason, scheduler=found)
    return vitals("lora/1", "alps", run(step, answer=Answer(jobs=(found,), age_s=age)), trained, NOW)


def whole(found: Vitals, later: float = 0, width: int | None = None) -> str:
    return live_line.line(found, NOW + later, term(width))


def test_a_run_that_trains() -> None:
    found = of(State.RUNNING, trained=HALF_WAY, nodes=("n1", "n2"), elapsed_s=1675, limit_s=5400)
    assert whole(found) == (
        "lora/1  RUNNING  step 155/240 65 %  11m left  loss 1.214  eval_loss 1.300 at step 150  "
        "1,912 tokens/s  mfu 30 %  job 7  2 nodes  28m of 1h30m"
    )
    assert "10m left" in whole(found, 45)
    assert "29m of 1h30m" in whole(found, 45)


def test_a_training_that_writes_no_more_is_not_nearly_done() -> None:
    found = of(State.RUNNING, trained=HALF_WAY)
    assert "no new step for 10m" in whole(found, 590)
    assert "left" not in whole(found, 590)
    assert "left" in whole(found, 49)


def test_a_job_in_the_queue_says_when_it_is_expected() -> None:
    start = "2027-01-15T10:10:00+00:00"  # NOW is 08:00 of that day
    found = of(State.QUEUED, start=start, reason="jobs of higher priority come first (Priority)")
    line = whole(found)
    assert ", in 2h10m" in line
    assert "train: jobs of higher priority come first (Priority)" in line
    assert "start any moment" in whole(found, 3 * 3600)
    assert "start" not in whole(of(State.RUNNING, start=start))
    for odd in ("", "N/A", "tomorrow", "9999-99-99T00:00:00"):
        assert "start not known" in whole(of(State.QUEUED, start=odd))


def test_attempts_and_a_silent_scheduler() -> None:
    chain = ChainState(attempts=3, planned=10)
    step = StepState(step="train", state=State.RUNNING, job="7", chain=chain)
    assert "attempt 3 of 10" in whole(vitals("a/1", "x", run(step), Trained(), NOW))
    again = StepState(step="train", state=State.RUNNING, job="7", attempt=1)
    assert "attempt 2 " in whole(vitals("a/1", "x", run(again), Trained(), NOW))
    silent = Answer(silent=(Problem(code="scheduler-silent", message="slurm does not answer"),))
    assert whole(vitals("a/1", "x", run(step, answer=silent), Trained(), NOW)).endswith(
        "slurm does not answer"
    )
    assert "as of 5m ago" in whole(of(State.RUNNING, age=300))


@given(
    width=st.integers(36, 220), numbers=st.booleans(), name=st.text("aé漢/\x1b[31m1", min_size=1, max_size=60)
)
def test_no_line_is_wider_than_the_terminal(width: int, numbers: bool, name: str) -> None:
    found = of(State.RUNNING, trained=HALF_WAY if numbers else Trained(), nodes=("n",), elapsed_s=60)
    found = vitals(name, "alps", run(*filter(None, [found.step])), found.trained, NOW)
    line = live_line.line(found, NOW, term(width))
    assert cells(line) <= width
    assert "\x1b" not in line


def test_state_step_and_time_left_stay_longest() -> None:
    found = of(State.RUNNING, trained=HALF_WAY, nodes=("n1", "n2"), elapsed_s=1675, limit_s=5400)
    assert whole(found, width=80) == (
        "lora/1  RUNNING  step 155/240 65 %  11m left  loss 1.214  28m of 1h30m"
    )
    assert whole(found, width=48) == "lora/1  RUNNING  step 155/240 65 %  loss 1.214"


def test_the_pace_is_that_of_most_rows() -> None:
    rows = [{"step": 10 * n, "time": 100.0 + 20 * n} for n in range(6)]
    assert pace(rows) == 2.0
    waited = [*rows, {"step": 60, "time": 9000.0}, {"step": 70, "time": 9020.0}]
    assert pace(waited) == 2.0  # between two jobs nothing was trained
    assert pace([{"step": 1, "tokens_per_s": 500.0}], tokens_per_step=1000) == 2.0
    assert pace([]) is None
    assert pace([{"step": 1, "time": "odd"}]) is None


@given(
    columns=st.integers(36, 220), height=st.integers(5, 60), points=st.integers(0, 50),
    log=st.lists(st.text(max_size=300), max_size=30), steps=st.integers(1, 12),
)  # fmt: skip
def test_the_picture_fits_every_window(
    columns: int, height: int, points: int, log: list[str], steps: int
) -> None:
    found = of(State.RUNNING, trained=HALF_WAY, nodes=("n1",), elapsed_s=1)
    assert found.step is not None
    view = View(
        vitals=found,
        steps=(found.step,) * steps,
        losses=[(n, float(n % 7)) for n in range(points)],
        log_name="train.log",
        log=log,
    )
    rows = watch_screen.rows(view, NOW, term(columns), height)
    assert len(rows) == height
    assert rows[-1].startswith("q leave")
    assert rows[0].startswith("lora/1 on alps")
    for row in rows:
        left, _, right = row.partition("\x1b[")
        assert cells(left) <= columns
        if right:  # the steps, beside the curve
            column, _, beside = right.partition("G")
            assert cells(left) < int(column)
            assert int(column) - 1 + cells(beside) <= columns


def test_more_runs_than_rows() -> None:
    rows = watch_screen.overview([of(State.RUNNING, trained=HALF_WAY)] * 30, NOW, term(80), 12)
    assert len(rows) == 12
    assert rows[10] == "and 21 more"
    assert rows[1].split() == [
        "lora/1",
        "alps",
        "running",
        "155/240",
        "11m",
        "left",
        "1.214",
        "1.91k",
        "30",
        "%",
        "-",
        "-",
    ]
