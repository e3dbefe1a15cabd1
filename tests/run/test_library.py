"""A Python program waits for runs, reads their states, metrics and logs, and ends them. Real jobs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hpctrain import JobFailed, LiveRun, Session, State, TimedOut, open_run
from hpctrain.cli.commands import logs as show_logs
from hpctrain.cli.commands import metrics as show_metrics
from hpctrain.cli.commands import status as show_status
from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from tests.e2e.product import small
from tests.patience import PATIENCE

LIMIT = 30 * PATIENCE
TRAINS = """echo begins
echo '{"step": 1, "loss": 2.5}' >> "$HPC_RUN/metrics.jsonl"
echo '{"step": 2, "loss": 1.5, "lr": 0.1}' >> "$HPC_RUN/metrics.jsonl"
echo '{"step": 2, "eval_loss": 1.75}' >> "$HPC_RUN/metrics.jsonl"
printf 'half\\rwhole\\nends'"""


def submitted(folder: Path, script: str, **more: str) -> LiveRun:
    (folder / "run.toml").write_text(small(script, **more))
    environ = {"HOME": str(folder), "USER": "me", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return Session(folder / "run.toml", environ=environ).submit()


def test_a_run_is_waited_for_and_read(tmp_path: Path) -> None:
    run = submitted(tmp_path, TRAINS.replace("\n", "; "))
    state = run.wait(timeout=LIMIT)
    assert state.state is State.DONE
    assert [(step.step, step.state, step.exit_code) for step in state.steps] == [("train", State.DONE, 0)]
    assert run.states() == {"train": State.DONE}
    metrics = run.metrics()
    assert (metrics.last["loss"], metrics.last_evaluation["eval_loss"]) == (1.5, 1.75)
    assert [row["step"] for row in metrics.training] == [1, 2]
    assert len(metrics.rows) == 3
    assert run.log() == ["begins", "whole", "ends"]
    assert run.log("train", lines=1) == ["ends"]
    assert run.checkpoints() is None


def printed(command: click.Command, run: LiveRun, **flags: bool) -> str:
    """What the command line says of the run."""
    out = Out.of(Flags(**flags), run.environ)
    done = CliRunner().invoke(command, ["small/1"], obj=out, standalone_mode=False)
    assert done.exception is None
    return done.output


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    run = submitted(tmp_path, TRAINS.replace("\n", "; "))
    state = run.wait(timeout=LIMIT)
    status = json.loads(printed(show_status.command, run, json=True))
    assert status["state"] == state.state.value
    assert [step["state"] for step in status["steps"]] == [step.state.value for step in state.steps]
    assert status["metrics"] == run.metrics().last
    assert json.loads(printed(show_metrics.command, run, json=True))["rows"] == run.metrics().rows
    assert printed(show_logs.command, run).splitlines() == run.log()


def test_an_earlier_run_is_opened_by_its_name(tmp_path: Path) -> None:
    run = submitted(tmp_path, "true")
    run.wait(timeout=LIMIT)
    for reference in ("small", "small/1", str(run.directory.path)):
        again = open_run(reference, run.environ)
        assert again.directory == run.directory
        assert again.wait(timeout=0).state is State.DONE
    with pytest.raises(ConfigError, match="no run 'small/2'"):
        open_run("small/2", run.environ)


def test_a_step_that_fails_is_raised_with_its_log(tmp_path: Path) -> None:
    run = submitted(tmp_path, "echo CUDA out of memory; exit 3")
    with pytest.raises(JobFailed) as caught:
        run.wait(timeout=LIMIT)
    (problem,) = caught.value.problems
    assert problem.message == "small/1: step train failed"
    assert f"log: {run.directory.log('train')}" in problem.notes
    assert run.states() == {"train": State.FAILED}


def test_a_wait_ends_in_time_and_hurts_no_job(tmp_path: Path) -> None:
    run = submitted(tmp_path, "sleep 300")
    began = time.monotonic()
    try:
        with pytest.raises(TimedOut, match=r"small/1 is not over after 0\.2 s: train"):
            run.wait(timeout=0.2)
        assert time.monotonic() - began < 10 * PATIENCE
        assert run.in_progress()
    finally:
        run.cancel()
    with pytest.raises(JobFailed, match="step train cancelled"):
        run.wait(timeout=LIMIT)
    assert run.jobs() == {}


def test_a_step_that_waits_is_resumed(tmp_path: Path) -> None:
    run = submitted(
        tmp_path,
        'test "$HPC_ATTEMPT" != 0 || test -e "$HPC_RUN/again" || { touch "$HPC_RUN/again"; exit 75; }',
    )
    assert run.wait(timeout=LIMIT).state is State.WAITING
    run.resume()
    assert run.wait(timeout=LIMIT).state is State.DONE


def test_what_is_not_there_yet_is_said(tmp_path: Path) -> None:
    run = submitted(tmp_path, "true")
    run.wait(timeout=LIMIT)
    assert not run.metrics().rows
    assert run.metrics().last == {}
    with pytest.raises(ConfigError, match="no step 'trian'"):
        run.log("trian")
    with pytest.raises(ConfigError, match="train of small/1 has no log of rank 7"):
        run.log(rank=7)


def test_metrics_of_two_attempts_are_told_apart(tmp_path: Path) -> None:
    """The newer row counts, and the last is the one that was written last."""
    run = submitted(tmp_path, "true")
    run.wait(timeout=LIMIT)
    rows = [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0}, {"step": 1, "loss": 2.5}]
    run.directory.metrics.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert [row["loss"] for row in run.metrics().rows] == [2.5, 2.0]
    assert run.metrics().last["loss"] == 2.5
