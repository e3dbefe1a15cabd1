"""Spare nodes on a real Slurm: seeded faults, a person's scancel, no spare left, a rank that stops.

`HPCTRAIN_SOAK` is how many faults the first test makes; each training of it meets three.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from hpctrain.model.job import State
from hpctrain.run.outcome import goodput, spent
from hpctrain_job import metrics
from hpctrain_job.chain.decision import Attempt, Cause
from tests.chain.rig import ChainRun, environ, plan
from tests.conftest import needs
from tests.guards.program import loss_after
from tests.hangs import test_job as hangs
from tests.patience import PATIENCE, wait_for
from tests.rig.conf import Conf
from tests.rig.slurm import Rig, missing

pytestmark = pytest.mark.slurm
PYTHON = "/usr/bin/python3"
PROGRAM = Path(__file__).with_name("program.py").read_text()
TRAIN = 'exec "$HPC_PYTHON" program.py "$HPC_CHECKPOINTS" {goal} {seconds}'
FAULTS = int(os.environ.get("HPCTRAIN_SOAK", "3"))
EACH = 3
SECONDS = 10.0
"""What half of the faults may take until ranks step again."""


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A Slurm of six nodes, which looks for dead ones far too late."""
    reason = missing()
    needs("slurm", not reason, reason)
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    keep = [str(Path(python).parents[2])] if python else []
    rig = Rig(Conf(nodes=6, gpus=4, kill_wait=6, slurmd_timeout=300), keep=keep).up()
    yield rig
    rig.down()


def started(
    rig: Rig, name: str, script: str, *, spares: int, machine: int = 6, total: str = "40m"
) -> ChainRun:
    root = rig.dir / "runs" / name
    root.mkdir(parents=True)
    planned = plan("slurm", script, total=total, time="20m", nodes=2, machine=machine, jobs=2, spares=spares)
    run = ChainRun.create(root, planned, environ(rig.bin), PYTHON)
    (run.path / "program.py").write_text(PROGRAM)
    run.submit()
    return run


def newest(run: ChainRun) -> Attempt:
    return run.step.record().attempts[-1]


def process_of(run: ChainRun, rank: int) -> str:
    pids: list[str] = re.findall(r"is process (\d+)", (run.path / f"logs/train.rank{rank}.log").read_text())
    return pids[-1]


def hurt(rig: Rig, run: ChainRun, kind: str, dice: random.Random) -> tuple[str, ...]:
    """One fault; the node that dies of it."""
    nodes = newest(run).nodes
    if kind == "rank":
        rig.run("kill", "-9", process_of(run, dice.randrange(2)))
        return ()
    lost = nodes[0] if kind == "node 0" else nodes[1]
    rig.lose_node(lost)
    return (lost,)


def seconds_to_steps(run: ChainRun, fault: Callable[[], tuple[str, ...]]) -> tuple[tuple[str, ...], float]:
    """From a fault until the ranks of another attempt step, and what the fault says."""
    before = len(run.step.record().attempts)
    began = time.time()
    lost = fault()

    def steps() -> bool:
        attempts = run.step.record().attempts
        return len(attempts) > before and run.rows()[-1]["time"] > attempts[-1].began

    wait_for(f"steps again: {run.log()}", steps, 60)
    again = newest(run).began
    return lost, float(next(row["time"] for row in run.rows() if row["time"] > again) - began)


def left(rig: Rig, run: ChainRun) -> list[str]:
    """The run's jobs that hold or want nodes; one on a dead node ends when Slurm knows of that."""
    jobs = rig.run("squeue", "-h", "-tPENDING,RUNNING", "-o%i").stdout.split()
    return [job for job in jobs if job in run.submitted()]


@pytest.mark.parametrize("seed", range(max(1, FAULTS // EACH)))
def test_a_training_goes_on_inside_its_allocation(
    rig: Rig, seed: int, record_property: Callable[[str, object], None]
) -> None:
    goal, dice = 420, random.Random(seed)
    run = started(rig, f"story{seed}", TRAIN.format(goal=goal, seconds=0.05), spares=EACH)
    wait_for(f"the first steps: {run.log()}", lambda: len(run.rows()) > 10, 60)
    kinds = ["rank", "node", "node 0"] if seed == 0 else dice.choices(["rank", "node", "node 0"], k=EACH)
    took = []
    for kind in kinds:
        time.sleep(dice.uniform(1.2, 3))  # a checkpoint comes every second
        lost, seconds = seconds_to_steps(run, partial(hurt, rig, run, kind, dice))
        took.append(seconds)
        ended = run.step.record().attempts[-2]
        cause = Cause.FAILED if kind == "rank" else Cause.NODE
        assert (ended.cause, ended.lost_nodes) == (cause, lost), run.log()
        assert not set(lost) & set(newest(run).nodes)
    record_property("seconds", [f"{kind} {seconds:.1f}" for kind, seconds in zip(kinds, took, strict=True)])
    assert statistics.median(took) <= SECONDS * PATIENCE, (kinds, took)
    run.until(State.DONE, seconds=90)
    wait_for(f"an empty queue: {run.log()}", lambda: not left(rig, run), 30)
    attempts = run.step.record().attempts
    assert len(attempts) == 1 + len(kinds), "no restart without a fault"
    assert [attempt.is_inside for attempt in attempts] == [False, *[True] * len(kinds)]
    rows = run.rows()
    lasting = [row["step"] for row, is_lost in zip(rows, metrics.lost(rows), strict=True) if not is_lost]
    assert lasting == list(range(1, goal + 1)), "strictly increasing, none lost, none twice"
    loss = 10.0
    for step in range(1, goal + 1):
        loss = loss_after(loss, step)
    assert rows[-1]["loss"] == loss
    shown = run.state().chain
    assert shown is not None
    assert (shown.attempts, shown.restarts, shown.ended) == (1, len(kinds), "finished")
    counted = goodput.attempts(run.live.directory, spent.job_spans(run.live.directory), rows)
    words = ["failed" if kind == "rank" else "node fault" for kind in kinds]
    assert [attempt.ended_by for attempt in counted] == [*words, "finished"]
    assert 0.2 < (goodput.goodput(counted) or 0) < 1


@pytest.mark.parametrize("fault", ["", "node 0"])
def test_a_persons_scancel_is_the_end(rig: Rig, fault: str) -> None:
    run = started(rig, "scancel", TRAIN.format(goal=9000, seconds=0.05), spares=1)
    wait_for(f"the first steps: {run.log()}", lambda: len(run.rows()) > 25, 60)
    if fault:
        seconds_to_steps(run, partial(hurt, rig, run, fault, random.Random(0)))
    attempts = len(run.step.record().attempts)
    rig.run("scancel", run.submitted()[0])
    wait_for(f"an empty queue: {run.log()}", lambda: not left(rig, run), 40)
    assert len(run.attempts()) == attempts, run.log()
    assert newest(run).cause is Cause.CANCELLED
    rows = len(run.rows())
    time.sleep(5)
    assert (len(run.rows()), left(rig, run), len(run.submitted())) == (rows, [], 2)
    assert run.until(State.CANCELLED, seconds=20).chain


def test_without_a_spare_left_the_next_job_takes_over(rig: Rig) -> None:
    run = started(rig, "over", TRAIN.format(goal=9000, seconds=0.05), spares=1)
    wait_for(f"the first steps: {run.log()}", lambda: len(run.rows()) > 25, 60)
    seconds_to_steps(run, partial(hurt, rig, run, "node", random.Random(0)))
    nodes = newest(run).nodes
    rig.lose_node(nodes[1])
    wait_for(f"the first job's end: {run.log()}", lambda: not newest(run).is_open, 60)
    assert (newest(run).cause, newest(run).lost_nodes) == (Cause.NODE, nodes[1:]), run.log()

    def is_away() -> bool:
        shown = rig.run("scontrol", "show", "job", run.submitted()[1]).stdout
        excluded = re.search(r"ExcNodeList=(\S+)", shown)
        return excluded is not None and excluded[1] in ("n[2-3]", "n2,n3", "n3,n2")

    wait_for(f"the next job stays away: {run.log()}", is_away, 30)
    run.live.cancel()


@pytest.mark.torch
def test_a_rank_that_stops_costs_its_node_and_a_spare_takes_its_place(rig: Rig) -> None:
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    script = f"GLOO_SOCKET_IFNAME=lo exec {python} program.py flag"
    planned = plan("slurm", script, total="40m", time="20m", nodes=2, machine=6, jobs=2, spares=1)
    root = rig.dir / "runs/hang"
    root.mkdir(parents=True)
    run = ChainRun.create(root, hangs.watched(planned, "stop", 2, 1), environ(rig.bin), PYTHON)
    hangs.prepare(run)
    run.submit()
    run.until(State.DONE, seconds=200)
    first, second = run.step.record().attempts
    assert (first.cause, first.lost_nodes) == (Cause.HUNG, (first.nodes[1],)), run.log()
    assert second.is_inside
    assert first.nodes[1] not in second.nodes
