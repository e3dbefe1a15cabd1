"""Nodes that failed, on a real Slurm: a job that dies by its node tells later runs, which avoid it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from hpctrain.model.cluster import Storage
from hpctrain.model.job import State
from hpctrain_job.bad_nodes import BadNode, NodeFinding, Place
from tests.chain.rig import ChainRun, environ, plan
from tests.conftest import needs
from tests.patience import wait_for
from tests.rig.conf import Conf
from tests.rig.slurm import Rig, missing

pytestmark = pytest.mark.slurm
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A Slurm of four nodes, two of which may be left out by a job of two."""
    reason = missing()
    needs("slurm", not reason, reason)
    rig = Rig(Conf(nodes=4, gpus=4, kill_wait=6)).up()
    yield rig
    rig.down()


def started(
    rig: Rig, root: Path, script: str, *, total: str = "5m", nodes: int = 2, spares: int | None = None
) -> ChainRun:
    root.mkdir(parents=True, exist_ok=True)
    planned = plan("slurm", script, total=total, time="5m", nodes=nodes, machine=4, jobs=2, spares=spares)
    storage = {**planned.cluster.storage, "state": Storage(path=f"{root}/state", source="s")}
    planned = attrs.evolve(planned, cluster=attrs.evolve(planned.cluster, storage=storage))
    run = ChainRun.create(root, planned, environ(rig.bin), PYTHON)
    run.submit()
    return run


def place(run: ChainRun) -> Place:
    state = run.live.graph.binding.roots["state"]
    return Place(f"{state}/nodes-{run.live.graph.cluster}-")


def entries(run: ChainRun) -> tuple[BadNode, ...]:
    return place(run).report(time.time()).nodes


def nodes_of(rig: Rig, job: str) -> set[str]:
    listed = rig.run("squeue", "-h", "-j", job, "-o%N").stdout.strip()
    return set(rig.run("scontrol", "show", "hostnames", listed).stdout.split()) if listed else set()


def test_a_job_that_dies_by_its_node_tells_the_next_run(rig: Rig) -> None:
    root = rig.dir / "bad-nodes/died"
    first = started(rig, root, ': >"began.$HPC_RANK"; exec sleep 600', total="1h")
    wait_for("both ranks", lambda: len([*first.path.glob("began.*")]) == 2, 40)
    lost = first.step.record().attempts[0].nodes[1]
    rig.kill_node(lost)
    wait_for("its end", lambda: first.step.record().attempts[0].cause, 90)
    wait_for(f"it is remembered: {first.log()}", lambda: bool(entries(first)), 10)
    first.live.cancel()
    (entry,) = entries(first)
    assert (entry.node, entry.findings[0].kind) == (lost, "died"), first.log()
    assert entry.findings[0].run == f"{first.path.parent.name}/{first.path.name}"
    rig.start_node(lost)
    wait_for("all are well", lambda: rig.run("sinfo", "-h", "-tidle", "-o%D").stdout.strip() == "4", 60)
    place(first).add([NodeFinding("gone-for-ever", "named", "", time.time(), time.time() + 9000)])
    second = started(rig, root, ': >"began.$HPC_RANK"; exec sleep 600', total="1h")
    wait_for("both ranks", lambda: len([*second.path.glob("began.*")]) == 2, 40)
    training, waiting = second.submitted()
    assert lost not in nodes_of(rig, training)
    told = [rig.run("scontrol", "show", "job", job).stdout for job in (training, waiting)]
    assert all(f"ExcNodeList={lost}\n" in text.replace(" \n", "\n") for text in told), told
    intents = [entry for entry in second.live.directory.record.read() if entry["event"] == "intent"]
    assert [entry["avoid"] for entry in intents] == [["gone-for-ever", lost]] * 2
    second.live.cancel()
    wait_for("an empty queue", lambda: not rig.run("squeue", "-h", "-o%i").stdout.split(), 40)


def test_spare_nodes_take_the_place_of_bad_ones(rig: Rig) -> None:
    """A job of all nodes cannot be kept away from one: its guards leave it idle."""
    root = rig.dir / "bad-nodes/spare"
    root.mkdir(parents=True)
    bad = rig.run("sinfo", "-h", "-N", "-o%N").stdout.split()[0]
    begin = f"{root}/state/nodes-toy-"
    script = ': >"began.$SLURMD_NODENAME"; sleep 1'
    Place(begin).add([NodeFinding(bad, "slow", "a product took 0.5 s", time.time())])
    run = started(rig, root, script, total="5m", spares=2)
    assert place(run).prefix == begin
    run.until(State.DONE, seconds=90)
    (attempt,) = run.attempts()
    assert bad not in attempt.nodes, run.log()
    assert len(attempt.nodes) == 2
