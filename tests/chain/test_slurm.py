"""Chains on a real Slurm: attempts under a short limit, a person's scancel, a limit that nobody knew.

A node that fails: `test_story.py`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain.model.job import State
from hpctrain_job.chain.decision import Cause
from tests.chain.program import loss_after
from tests.chain.rig import ChainRun, environ, plan
from tests.conftest import needs
from tests.patience import wait_for
from tests.rig.conf import Conf
from tests.rig.slurm import Rig, missing

pytestmark = pytest.mark.slurm
PYTHON = "/usr/bin/python3"
TRAIN = 'exec "$HPC_PYTHON" program.py "$HPC_CHECKPOINTS" {goal} {seconds}'


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A Slurm of three nodes."""
    reason = missing()
    needs("slurm", not reason, reason)
    rig = Rig(Conf(nodes=3, gpus=4, kill_wait=6)).up()
    yield rig
    rig.down()


def started(
    rig: Rig,
    name: str,
    script: str,
    *,
    total: str = "5m",
    time: str = "1m",
    nodes: int = 1,
    jobs: int | None = None,
    requeue: bool | None = None,
) -> ChainRun:
    root = rig.dir / "chains" / name
    root.mkdir(parents=True)
    planned = plan(
        "slurm", script, total=total, time=time, nodes=nodes, machine=3, jobs=jobs, requeue=requeue
    )
    run = ChainRun.create(root, planned, environ(rig.bin), PYTHON)
    run.submit()
    return run


def queued(rig: Rig, run: ChainRun) -> list[str]:
    """The run's jobs that Slurm has not ended."""
    jobs = set(run.submitted())
    return [job for job in rig.run("squeue", "-h", "-o%i").stdout.split() if job in jobs]


def test_attempts_under_a_short_limit_are_one_training_and_the_rest_is_taken_back(rig: Rig) -> None:
    goal = 700
    run = started(rig, "short", TRAIN.format(goal=goal, seconds=0.05))
    assert len(queued(rig, run)) == len(run.submitted()) == 6
    done = run.until(State.DONE, seconds=280)
    attempts = run.attempts()
    assert len(attempts) >= 2, run.log()
    assert [a.cause for a in attempts] == [*[Cause.SAVED] * (len(attempts) - 1), Cause.FINISHED], run.log()
    assert [a.job for a in attempts] == list(run.submitted()[: len(attempts)])
    steps = [row["step"] for row in run.rows()]
    assert steps == list(range(1, goal + 1)), "strictly increasing, none lost, none twice"
    loss = 10.0
    for step in range(1, goal + 1):
        loss = loss_after(loss, step)
    assert run.rows()[-1]["loss"] == loss
    wait_for("an empty queue", lambda: not queued(rig, run))
    begun = [line for line in run.log().splitlines() if line.startswith("attempt in job")]
    assert len(begun) == len(attempts)
    assert done.chain is not None
    assert done.chain.ended == "finished"
    assert run.live.resume().jobs == {}
    assert len(run.submitted()) == 6


@pytest.mark.parametrize(("jobs", "requeue"), [(2, None), (None, True)], ids=["handed over", "requeued"])
def test_attempts_that_hand_over_the_rest_or_are_requeued_are_the_same_training(
    rig: Rig, jobs: int | None, requeue: bool | None
) -> None:
    goal = 700
    name = "requeued" if requeue else "handed-over"
    run = started(rig, name, TRAIN.format(goal=goal, seconds=0.05), total="8m", jobs=jobs, requeue=requeue)
    assert len(run.submitted()) == (1 if requeue else 2)
    run.until(State.DONE, seconds=500)
    attempts = run.attempts()
    assert len(attempts) >= 2, run.log()
    assert [a.cause for a in attempts] == [*[Cause.SAVED] * (len(attempts) - 1), Cause.FINISHED], run.log()
    if requeue:
        assert {a.job for a in attempts} == set(run.submitted())
        waits = [(b.began - (a.ended or 0)) for a, b in itertools.pairwise(attempts)]
        assert max(waits) < 100, "without Slurm's two minutes"
    else:
        assert [a.job for a in attempts] == list(run.submitted()[: len(attempts)])
    assert [row["step"] for row in run.rows()] == list(range(1, goal + 1))
    loss = 10.0
    for step in range(1, goal + 1):
        loss = loss_after(loss, step)
    assert run.rows()[-1]["loss"] == loss
    wait_for("an empty queue", lambda: not queued(rig, run), 40)


def test_a_persons_scancel_of_one_job_is_the_end_of_all(rig: Rig) -> None:
    run = started(rig, "scancel", TRAIN.format(goal=9000, seconds=0.05), total="3h", time="1h")
    wait_for("the first steps", lambda: len(run.rows()) > 3, 40)
    rig.run("scancel", run.submitted()[0])
    wait_for("an empty queue", lambda: not queued(rig, run), 40)
    assert [a.cause for a in run.attempts()] == [Cause.CANCELLED], run.log()
    found = run.until(State.CANCELLED, seconds=20)
    assert found.chain is not None
    assert found.chain.ended == "cancelled"
    before = run.submitted()
    run.live.resume()  # the person thinks again
    wait_for("another attempt", lambda: len(run.step.record().attempts) == 2, 40)
    assert len(run.submitted()) == len(before) + 4
    run.live.cancel()
    wait_for("an empty queue", lambda: not queued(rig, run), 40)
    assert run.until(State.CANCELLED, seconds=20).chain


def test_a_limit_on_jobs_that_nobody_knew_leaves_the_rest_to_continue(rig: Rig, tmp_path: Path) -> None:
    """A site whose sbatch refuses the third job: the run has started all the same."""
    refusal = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy"
    count = f"{tmp_path}/count"
    full = f'(($(wc -l <{count}) < 3)) || {{ echo "{refusal}" >&2; exit 1; }}'
    body = f'echo >>{count}; {full}; exec "${{real[@]}}" "$@"'
    folder = rig.clients("limited", sbatch=body)
    root = rig.dir / "chains/limited"
    root.mkdir(parents=True)
    planned = plan("slurm", "exec sleep 600", total="5h", time="1h", machine=3)
    run = ChainRun.create(root, planned, {"PATH": f"{folder}:{os.environ['PATH']}"}, PYTHON)
    run.submit()
    assert len(queued(rig, run)) == len(run.submitted()) == 2
    assert run.until(State.RUNNING, State.QUEUED, seconds=20).chain
    run.live.cancel()
    wait_for("an empty queue", lambda: not queued(rig, run), 40)
