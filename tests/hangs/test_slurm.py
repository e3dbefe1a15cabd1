"""A hang on two nodes of a real Slurm: each is watched, the next attempt stays away from the node named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain_job.chain.decision import Cause
from tests.chain.rig import ChainRun, environ, plan
from tests.conftest import needs
from tests.hangs.test_job import prepare, watched
from tests.patience import wait_for
from tests.rig.conf import Conf
from tests.rig.slurm import Rig, missing

pytestmark = [pytest.mark.slurm, pytest.mark.torch]


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A Slurm of three nodes, so that one may be left out of a job of two."""
    reason = missing()
    needs("slurm", not reason, reason)
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    environments = Path(python).parents[2]  # a link, and beside it what it points to
    rig = Rig(Conf(nodes=3, gpus=4, kill_wait=6), keep=[str(environments)]).up()
    yield rig
    rig.down()


def test_a_node_whose_rank_hangs_is_avoided_and_the_training_goes_on(rig: Rig) -> None:
    script = f"GLOO_SOCKET_IFNAME=lo exec {os.environ['HPCTRAIN_TORCH_PYTHON']} program.py flag"
    planned = plan("slurm", script, total="30m", time="10m", nodes=2, machine=3, jobs=3)
    root = rig.dir / "chains/hang"
    root.mkdir(parents=True)
    run = ChainRun.create(root, watched(planned, "stop", 2, 1), environ(rig.bin), "/usr/bin/python3")
    prepare(run)
    run.submit()
    wait_for("the second attempt's end", lambda: len(run.step.record().attempts) == 2, 200)
    first, second = run.attempts()[:2]
    assert (first.cause, first.lost_nodes) == (Cause.HUNG, (first.nodes[1],)), run.log()
    assert first.nodes[1] not in second.nodes
    assert second.cause is Cause.FINISHED, run.log()
    assert "hpctrain: rank 1 on login hangs: its process is stopped (" in run.log()
