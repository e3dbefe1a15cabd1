"""A whole job of this machine with a trainer that knows nothing of us: said, stopped, started again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import attrs
import pytest

from hpctrain.cli.commands.status import _json
from hpctrain.model.job import State
from hpctrain.model.plan import Plan
from hpctrain.model.step import Ranks
from hpctrain.run.diagnosis import diagnose, failures
from hpctrain.run.diagnosis.hanging import hanging
from hpctrain_job.chain.decision import Cause
from tests.chain.rig import ChainRun, environ, plan
from tests.conftest import needs
from tests.hangs.test_real import TERMS
from tests.patience import wait_for

PROGRAM = Path(__file__).with_name("program.py").read_text()

pytestmark = pytest.mark.torch


def watched(planned: Plan, on_hang: Literal["stop", "off"] | None, nodes: int, per_node: int) -> Plan:
    """The plan with ranks on each node, and a watch."""
    (step,) = planned.steps
    launch = attrs.evolve(step.step.launch, ranks=Ranks.PER_GPU, nodes=nodes, gpus_per_node=per_node)
    resources = attrs.evolve(planned.run.resources, on_hang=on_hang)
    return attrs.evolve(
        planned,
        run=attrs.evolve(planned.run, resources=resources),
        steps=(attrs.evolve(step, step=attrs.evolve(step.step, launch=launch)),),
    )


def prepare(run: ChainRun) -> None:
    """The program in the run's folder, and thresholds that a test has time for."""
    (run.path / "program.py").write_text(PROGRAM)
    rank = run.path / "steps/train/rank.sh"
    words = " ".join(f"--term {name} {seconds}" for name, seconds in TERMS.items())
    rank.write_text(rank.read_text().replace("${HPC_HANG_TERMS:-}", words))


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ChainRun]:
    """A run of several jobs with two ranks each, whose `on_hang` the test names."""
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    monkeypatch.setenv("HOME", str(tmp_path))
    planned = plan("local", f"exec {python} program.py flag", total="300s", time="200s")
    made = ChainRun.create(tmp_path, watched(planned, request.param, nodes=1, per_node=2), environ())
    prepare(made)
    yield made
    made.live.cancel()


@pytest.mark.parametrize("run", ["stop"], indirect=True)
def test_a_hang_is_ended_with_its_reason_and_the_next_job_goes_on(run: ChainRun) -> None:
    run.submit()
    run.until(State.DONE, seconds=150)
    first, second, *_ = run.attempts()
    assert (first.cause, second.cause) == (Cause.HUNG, Cause.FINISHED)
    assert first.lost_nodes == (os.uname().nodename,)
    jobs = [json.loads(line) for line in (run.path / "steps/train/jobs.jsonl").read_text().splitlines()]
    assert [job["code"] for job in jobs if job["event"] == "ended"][:2] == [79, 0]
    assert f"hpctrain: rank 1 on {os.uname().nodename} hangs: its process is stopped (" in run.log()
    wait_for("the watches end", lambda: not list(Path("/dev/shm").glob(f"hpctrain-*-{first.job}.*")), 20)


@pytest.mark.parametrize("run", [None], indirect=True)
def test_a_hang_is_said_where_nothing_is_asked(run: ChainRun) -> None:
    run.submit()
    wait_for("the verdict", lambda: hanging(run.live.directory, run.state()) is not None, 120)
    state = run.state()
    verdict = hanging(run.live.directory, state)
    assert verdict is not None
    assert (state.state, verdict.ranks, verdict.ends) == (State.RUNNING, (1,), False)
    assert _json(run.live.directory, state)["hang"]["nodes"] == [os.uname().nodename]
    (cause,) = diagnose.diagnose(run.live.directory, state, failures.rules()).causes
    assert cause.rule.name == "hang"
    assert "1 rank waits for it in gloo:all_reduce 42" in cause.evidence.text


@pytest.mark.parametrize("run", ["off"], indirect=True)
def test_without_a_watch_nothing_of_it_is_started(run: ChainRun) -> None:
    scripts = (run.path / "steps/train").glob("*.sh")
    assert not [path for path in scripts if "hangs" in path.read_text() or "HPC_PULSE" in path.read_text()]
