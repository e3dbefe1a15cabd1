"""Vetting on a real Slurm: a slow node, one without a GPU, one with a wrong product are out within a minute,
and so are those with whom no collective works, by gloo and by sockets.

All nodes are this machine, so what is wrong with one is a stand-in: its nvidia-smi prints what a file says,
its Python multiplies slowly, or wrongly; its network gives other values, or never answers.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.model.job import State
from hpctrain.model.layer import EnvVar, How
from hpctrain.model.plan import Plan
from hpctrain_job.chain.decision import Cause
from hpctrain_job.exit_codes import TOO_FEW_NODES
from tests.chain.rig import ChainRun, environ, plan
from tests.conftest import needs
from tests.patience import PATIENCE
from tests.rig.conf import Conf
from tests.rig.slurm import Rig, missing

pytestmark = pytest.mark.slurm

SMI = """\
#!/bin/sh
# stand-in of nvidia-smi: what a file says of this node
cat {dir}/bad/$SLURMD_NODENAME.gpus 2>/dev/null || echo "97871, 0"
"""
PYTHON = """\
#!/bin/bash
# this machine's Python; on a node with a fault in {dir}/bad it is the stand-in of a bad processor
case "$*" in
  *vet.{part}*) export PYTHONPATH=$PYTHONPATH:{dir}/bad/$SLURMD_NODENAME ;;
esac
exec {python} "$@"
"""
BAD = {
    "slow": "import operator\nreal = operator.mul\n"
    "def mul(a, b):\n    sum(range(30))\n    return real(a, b)\noperator.mul = mul\n",
    "silent": "import time\nfrom hpctrain_job.collectives import measured\n"
    "measured.measured = lambda *_: time.sleep(600)\n",
    "lying": "from hpctrain_job.collectives import ring\nreal = ring._exchanged\n"
    "ring._exchanged = lambda *words: (data := real(*words))[:-1] + bytes([data[-1] ^ 1])\n",
    "lying gloo": "from torch import distributed\nreal = distributed.all_reduce\n"
    "distributed.all_reduce = lambda values: (real(values), values[7].add_(1))\n",
    "wrong": "import operator\nreal = operator.mul\n"
    "operator.mul = lambda a, b: real(a, b) + (a % 1000 == 7)\n",
}
TRAIN = 'echo "trained on $SLURMD_NODENAME"'


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A Slurm of five nodes with a GPU each."""
    reason = missing()
    needs("slurm", not reason, reason)
    with_torch = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    environments = [str(Path(with_torch).parents[2])] if with_torch else []
    rig = Rig(Conf(nodes=5, gpus=4, kill_wait=6), keep=environments).up()
    tools = rig.dir / "sbin"
    tools.mkdir()
    for path, text, part, python in (
        (tools / "nvidia-smi", SMI, "", ""),
        (rig.dir / "outside/python", PYTHON, "node", "/usr/bin/python3"),
        (rig.dir / "plain/python", PYTHON, "sweep", "/usr/bin/python3"),
        (rig.dir / "torch/python", PYTHON, "sweep", with_torch),
    ):
        path.parent.mkdir(exist_ok=True)
        here = text.replace("{dir}", str(rig.dir)).replace("{part}", part)
        path.write_text(here.replace("{python}", python))
        path.chmod(0o755)
    assert rig.run("mount", "--bind", str(tools), "/usr/local/sbin").returncode == 0
    yield rig
    rig.down()


def bad(rig: Rig, **faults: str) -> None:
    """What is wrong with which node."""
    shutil.rmtree(rig.dir / "bad", ignore_errors=True)
    (rig.dir / "bad").mkdir()
    for node, fault in faults.items():
        if fault in BAD:
            (rig.dir / "bad" / node).mkdir()
            (rig.dir / "bad" / node / "sitecustomize.py").write_text(BAD[fault])
        else:
            (rig.dir / "bad" / f"{node}.gpus").write_text(fault)


def found(run: ChainRun) -> list[dict[str, Any]]:
    """The findings of a run's vetting."""
    path = run.path / "steps/train/vetted.jsonl"
    assert path.exists(), run.log()
    return [json.loads(line) for line in path.read_text().splitlines()]


def started(
    rig: Rig, name: str, *, in_job: int = 2, spares: int | None = None, inside: str = "plain"
) -> ChainRun:
    """A job whose environment has one of the two Pythons."""
    planned = plan("slurm", TRAIN, total="10m", time="5m", nodes=2, machine=5, jobs=3, spares=spares)
    planned = vetted(planned, in_job, str(rig.dir / inside))
    root = rig.dir / "chains" / name
    root.mkdir(parents=True)
    run = ChainRun.create(root, planned, environ(rig.bin), str(rig.dir / "outside/python"))
    run.submit()
    return run


def vetted(planned: Plan, in_job: int, path: str) -> Plan:
    """With `vet`, and so many nodes in the job, which a user asks for in Slurm's words."""
    ask = {"slurm": (f"--nodes={in_job}",)} if in_job > 2 else {}
    resources = attrs.evolve(planned.run.resources, vet=True, ask=ask)
    hardware = attrs.evolve(planned.cluster.hardware, gpu_kind="cuda")
    (step,) = planned.steps
    own = (
        EnvVar(name="PATH", value=path, how=How.PREPEND, why="the environment", source="test"),
        EnvVar(name="GLOO_SOCKET_IFNAME", value="lo", why="all nodes are one computer", source="test"),
    )
    step = attrs.evolve(step, around=attrs.evolve(step.around, env=(*step.around.env, *own)))
    return attrs.evolve(
        planned,
        steps=(step,),
        run=attrs.evolve(planned.run, resources=resources),
        cluster=attrs.evolve(planned.cluster, hardware=hardware),
    )


def test_three_bad_nodes_of_five_are_left_out_and_the_job_trains_on_the_others(rig: Rig) -> None:
    bad(rig, n1="slow", n2="No devices were found\n", n4="wrong")
    run = started(rig, "in-job", in_job=5)
    run.until(State.DONE, State.FAILED, seconds=100)
    findings = found(run)
    assert {row["node"]: row["kind"] for row in findings} == {
        "n1": "slow", "n2": "GPUs missing", "n4": "wrong product",
    }, run.log()  # fmt: skip
    assert findings[0]["at"] - run.step.record().attempts[0].began < 60
    logs = "".join(path.read_text() for path in run.path.glob("logs/train.rank*.log"))
    assert {line.split()[-1] for line in logs.splitlines() if line.startswith("trained")} == {"n3", "n5"}, (
        logs
    )
    (first, *_) = run.attempts()
    assert (first.cause, set(first.lost_nodes)) == (Cause.FINISHED, {"n1", "n2", "n4"})


@pytest.mark.parametrize(("inside", "engine"), [("plain", "sockets"), ("torch", "gloo")])
def test_nodes_with_whom_no_collective_works_are_left_out(
    rig: Rig, inside: str, engine: str, request: pytest.FixtureRequest
) -> None:
    """Each pair's other node has partners with whom all went well."""
    if inside == "torch":
        named = bool(os.environ.get("HPCTRAIN_TORCH_PYTHON"))
        needs("torch", named, "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    lying = "lying" if inside == "plain" else "lying gloo"
    bad(rig, n2=lying, n4="silent")
    run = started(rig, f"pairs-{inside}", in_job=5, inside=inside)
    run.until(State.DONE, State.FAILED, seconds=150)
    log = run.log()
    findings = found(run)
    assert {row["node"]: row["kind"] for row in findings} == {
        "n2": "wrong collective", "n4": "no collective",
    }, log  # fmt: skip
    assert f"collectives in pairs over {engine}" in log
    (first, *_) = run.attempts()
    assert (first.cause, set(first.lost_nodes)) == (Cause.FINISHED, {"n2", "n4"}), log
    logs = "".join(path.read_text() for path in run.path.glob("logs/train.rank*.log"))
    assert {line.split()[-1] for line in logs.splitlines() if line.startswith("trained")} <= {
        "n1",
        "n3",
        "n5",
    }


def test_spare_nodes_take_the_place_of_unfit_ones_whose_guards_leave(rig: Rig) -> None:
    bad(rig, n1="No devices were found\n")
    run = started(rig, "spares", spares=2)
    run.until(State.DONE, State.FAILED, seconds=100)
    (first, *_) = run.attempts()
    assert (first.cause, set(first.lost_nodes)) == (Cause.FINISHED, {"n1"}), run.log()
    trained = "".join(path.read_text() for path in run.path.glob("logs/train.rank*.log"))
    assert "trained on" in trained
    assert "trained on n1" not in trained


def test_too_few_fit_nodes_end_the_job_and_the_chain_goes_on_without_them(rig: Rig) -> None:
    bad(rig, n2="No devices were found\n")
    began = time.time()
    run = started(rig, "chain")
    run.until(State.DONE, seconds=120)
    first, second = run.attempts()[:2]
    assert (first.cause, first.lost_nodes) == (Cause.NODE, ("n2",)), run.log()
    assert (first.ended or 0) - began < 90 * PATIENCE
    assert "n2" not in second.nodes
    assert second.cause is Cause.FINISHED, run.log()
    ends = [json.loads(line) for line in (run.path / "steps/train/jobs.jsonl").read_text().splitlines()]
    assert [row["code"] for row in ends if row["event"] == "ended"][:2] == [TOO_FEW_NODES, 0]
    assert "hpctrain: n2 is unfit: GPUs missing: 0 of 1 answer" in run.log()


def test_nobody_is_accused_where_all_are_well(rig: Rig) -> None:
    bad(rig)
    run = started(rig, "well")
    run.until(State.DONE, State.FAILED, seconds=100)
    assert not Path(run.path / "steps/train/vetted.jsonl").exists()
