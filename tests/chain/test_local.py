"""Chains of processes on this machine: the same scripts and the same judge, without a scheduler's help."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import SubmitError
from hpctrain.model.job import State
from hpctrain.model.step import After
from hpctrain_job.chain.decision import Cause
from tests.chain.program import loss_after
from tests.chain.rig import LAYOUT, ChainRun, environ, plan
from tests.patience import wait_for
from tests.schedulers import build

TRAIN = 'exec "$HPC_PYTHON" program.py "$HPC_CHECKPOINTS" {goal} {seconds}'


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ChainRun]]:
    """Runs that are cancelled behind the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    made: list[ChainRun] = []
    yield made
    for run in made:
        run.live.cancel()


def started(
    runs: list[ChainRun],
    root: Path,
    script: str,
    *,
    total: str = "40s",
    time: str = "8s",
    jobs: int | None = None,
) -> ChainRun:
    run = ChainRun.create(root, plan("local", script, total=total, time=time, jobs=jobs), environ())
    runs.append(run)
    run.submit()
    return run


def test_a_training_of_several_jobs_is_the_training_of_one(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, TRAIN.format(goal=110, seconds=0.1), total="50s", time="10s")
    assert len(run.submitted()) == 6
    done = run.until(State.DONE, seconds=90)
    attempts = run.attempts()
    assert [a.cause for a in attempts][-1] is Cause.FINISHED
    assert {a.cause for a in attempts[:-1]} == {Cause.SAVED}
    assert len(attempts) >= 3
    assert [row["step"] for row in run.rows()] == list(range(1, 111))
    loss = 10.0
    for step in range(1, 111):
        loss = loss_after(loss, step)
    assert run.rows()[-1]["loss"] == loss
    assert done.chain is not None
    assert (done.chain.attempts, done.chain.planned, done.chain.ended) == (len(attempts), 5, "finished")
    assert run.live.resume().jobs == {}


def test_a_wrong_setting_ends_the_chain_and_a_person_goes_on(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, "[[ -e fixed ]] || exit 78; exit 0")
    run.until(State.FAILED, seconds=30)
    run.attempts()
    found = run.state()
    assert found.reason.startswith("wrong setting")  # with the exit code as soon as the job wrote it
    assert found.chain is not None
    assert found.chain.attempts == 1
    wait_for("an empty queue", lambda: run.state().chain.jobs == ())  # type: ignore[union-attr]
    (run.path / "fixed").touch()
    earlier = run.submitted()
    run.live.resume()
    assert run.until(State.DONE, seconds=30).chain
    assert len(run.submitted()) > len(earlier)
    assert len(run.attempts()) == 2


NAIVE = """
at=0 ck=$HPC_CHECKPOINTS
[[ ! -e $ck/latest ]] || at=$(<"$ck/$(<"$ck/latest")/weights")
echo "begins at $at"
for ((n = 0; n < 3; n++)); do
  at=$((at + 10))
  mkdir "$ck/step-$at"
  echo "$at" >"$ck/step-$at/weights"
  : >"$ck/step-$at/state.json"
  echo "step-$at" >"$ck/latest"
done
: >"$HPC_RUN/stop"
exit 75
"""
"""A trainer that writes no manifest and believes its own pointer, as NeoX and nanotron do."""


def test_a_trainer_that_verifies_nothing_goes_on_from_the_checkpoint_before_a_damaged_one(
    runs: list[ChainRun], tmp_path: Path
) -> None:
    saves = attrs.evolve(LAYOUT, pointer="latest")
    planned = plan("local", NAIVE, total="5h", time="1h", saves=saves, keep=2)
    run = ChainRun.create(tmp_path, planned, environ())
    runs.append(run)
    run.submit()
    run.until(State.CANCELLED, seconds=60)
    folder = next((tmp_path / "checkpoints").glob("*/*"))
    wait_for("manifests", lambda: len(list(folder.glob("*/MANIFEST"))) == 2, 60)
    wait_for("the oldest is dropped", lambda: not (folder / "step-10").exists(), 60)
    (folder / "step-30/weights").write_text("99\n")
    (run.path / "stop").unlink()
    run.live.resume()
    wait_for("the next attempt", lambda: run.log().count("begins at") == 2, 60)
    run.until(State.CANCELLED, seconds=60)
    assert "step-30 is damaged: weights is not what was written" in run.log()
    assert "begins at 20\n" in run.log()
    assert (folder / "damaged/step-30/weights").read_text() == "99\n"
    wait_for("manifests", lambda: len(list(folder.glob("*/MANIFEST"))) == 2, 60)
    for weights in folder.glob("step-*/weights"):
        weights.write_text("99\n")
    (run.path / "stop").unlink()
    run.live.resume()
    found = run.until(State.FAILED, seconds=60)
    assert found.reason.startswith("damaged checkpoints")
    assert run.log().count("begins at") == 2, "nothing began, and nothing was lost"


def test_no_progress_ends_the_chain(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, "exit 1")
    found = run.until(State.FAILED, seconds=60)
    assert found.reason.startswith("no progress over 3 attempts")
    assert len(run.attempts()) == 3


def test_a_stop_file_saves_and_ends_it(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, TRAIN.format(goal=900, seconds=0.1), total="2h", time="1h")
    wait_for("the first steps", lambda: len(run.rows()) > 3, 30)
    (run.path / "stop").touch()
    found = run.until(State.CANCELLED, seconds=60)
    assert found.reason == f"stopped: {run.path}/stop is there"
    (attempt,) = run.attempts()
    assert attempt.cause is Cause.SAVED
    with pytest.raises(SubmitError, match="so each job would end at once"):
        run.live.resume()
    (run.path / "stop").unlink()
    run.live.resume()
    wait_for("it goes on", lambda: len(run.step.record().attempts) == 2, 30)


def test_cancel_ends_all_of_its_jobs(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, TRAIN.format(goal=900, seconds=0.1), total="3h", time="1h")
    wait_for("the first steps", lambda: len(run.rows()) > 3, 30)
    running = run.until(State.RUNNING, seconds=30)
    assert running.chain is not None
    assert len(running.chain.jobs) == 4
    run.live.cancel()
    found = run.until(State.CANCELLED, seconds=30)
    assert found.chain is not None
    assert (found.chain.jobs, found.chain.ended) == ((), "cancelled")
    assert len(run.attempts()) == 1


def test_continue_adds_what_a_limit_on_jobs_left_out(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, TRAIN.format(goal=60, seconds=0.1), total="80s", time="8s", jobs=1)
    assert len(run.submitted()) == 1
    run.until(State.WAITING, seconds=40)
    run.live.resume()
    assert len(run.submitted()) == 2
    run.until(State.WAITING, State.DONE, seconds=40)
    assert [row["step"] for row in run.rows()] == list(range(1, run.rows()[-1]["step"] + 1))


def test_the_jobs_hand_over_what_a_limit_on_jobs_left_out(runs: list[ChainRun], tmp_path: Path) -> None:
    run = started(runs, tmp_path, TRAIN.format(goal=120, seconds=0.1), total="80s", time="8s", jobs=2)
    assert len(run.submitted()) == 2
    run.until(State.DONE, seconds=120)
    attempts = run.attempts()
    assert len(attempts) >= 3
    assert [attempt.job for attempt in attempts] == list(run.submitted()[: len(attempts)])
    assert [row["step"] for row in run.rows()] == list(range(1, 121))
    intents = [entry["tag"] for entry in run.live.directory.record.read() if entry["event"] == "intent"]
    assert len(intents) == len(set(intents)) == len(run.submitted()), "each job was asked for once"


def test_a_step_behind_the_training_waits_until_the_chain_has_finished(
    runs: list[ChainRun], tmp_path: Path
) -> None:
    made = plan("local", "exit 0", total="2h", time="1h")
    behind = attrs.evolve(build.step("touch exported", name="export"), after=(After("train"),))
    export = attrs.evolve(made.steps[0], step=behind)
    run = ChainRun.create(tmp_path, attrs.evolve(made, steps=(*made.steps, export)), environ())
    runs.append(run)
    assert run.submit().waiting == ("export",)
    wait_for("the training", lambda: run.live.states()["train"] is State.DONE, 30)
    assert run.live.states()["export"] is State.WAITING
    run.live.resume()
    wait_for("the export", lambda: run.live.states()["export"] is State.DONE, 30)
    assert (run.path / "exported").exists()
