"""Chains on a stand-in for an OpenPBS: the same judge, and qdel for what is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain.model.job import State
from hpctrain_job.chain.decision import Cause
from tests.chain.rig import ChainRun, environ, plan
from tests.patience import wait_for
from tests.standin_pbs.fixtures import Standin

TRAIN = 'exec "$HPC_PYTHON" program.py "$HPC_CHECKPOINTS" {goal} {seconds}'


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    """A stand-in for an OpenPBS of two nodes."""
    standin = Standin(tmp_path)
    yield standin
    standin.clean()


def started(
    standin: Standin, root: Path, script: str, *, total: str, time: str, jobs: int | None = None
) -> ChainRun:
    planned = plan("pbs", script, total=total, time=time, jobs=jobs)
    run = ChainRun.create(root, planned, environ(standin.bin))
    run.submit()
    return run


def test_attempts_save_when_they_warn_themselves_and_the_rest_is_taken_back(
    standin: Standin, tmp_path: Path
) -> None:
    run = started(standin, tmp_path, TRAIN.format(goal=60, seconds=0.1), total="40s", time="8s")
    assert len(run.submitted()) == 6
    run.until(State.DONE, seconds=90)
    causes = [attempt.cause for attempt in run.attempts()]
    assert causes == [*[Cause.SAVED] * (len(causes) - 1), Cause.FINISHED], run.log()
    assert len(causes) >= 2
    assert [row["step"] for row in run.rows()] == list(range(1, 61))
    wait_for("an empty queue", lambda: run.state().chain.jobs == ())  # type: ignore[union-attr]


def test_a_wrong_setting_takes_the_waiting_jobs_back(standin: Standin, tmp_path: Path) -> None:
    run = started(standin, tmp_path, "exit 78", total="3h", time="1h")
    run.until(State.FAILED, seconds=60)
    run.attempts()
    wait_for("an empty queue", lambda: run.state().chain.jobs == ())  # type: ignore[union-attr]
    assert run.state().reason.startswith("wrong setting")
    assert len(run.attempts()) == 1


def test_the_jobs_hand_over_what_a_limit_on_jobs_left_out(standin: Standin, tmp_path: Path) -> None:
    """By qsub from inside of a job, each behind the one before."""
    script = TRAIN.format(goal=110, seconds=0.1)
    run = started(standin, tmp_path, script, total="60s", time="10s", jobs=2)
    assert len(run.submitted()) == 2
    run.until(State.DONE, seconds=180)
    attempts = run.attempts()
    assert len(attempts) >= 3, run.log()
    assert [a.cause for a in attempts] == [*[Cause.SAVED] * (len(attempts) - 1), Cause.FINISHED], run.log()
    assert [a.job for a in attempts] == list(run.submitted()[: len(attempts)])
    assert [row["step"] for row in run.rows()] == list(range(1, 111))
    wait_for("an empty queue", lambda: run.state().chain.jobs == ())  # type: ignore[union-attr]
    others = [job for job in standin.jobs if job not in run.submitted()]
    assert others == [], "each was asked for once"
