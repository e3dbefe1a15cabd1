"""Real jobs of a scheduler that this computer has: two nodes, a failure, a cancellation, one tag twice."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from attrs import frozen

from hpctrain.model.job import Job, JobState, State
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.model.words import Raw
from hpctrain.render.tree import Sources, tree
from hpctrain.run.steps.submit import Order, job_of
from hpctrain.run.system.tools import Tools
from hpctrain.testing.answers import AnswerBase
from hpctrain.testing.base import none
from hpctrain.testing.scheduler import Request

WHO = 'echo "who $HPC_RANK $HPC_LOCAL_RANK $HPC_NODE_RANK $HPC_WORLD $HPC_NODES $HPC_GPUS ${HPC_HEAD:+head}"'
TAG, OTHER_TAG = "a" * 32, "b" * 32
SECONDS = 120
"""For a small job of a scheduler that has free nodes."""


@frozen
class Scheduler:
    """The scheduler itself, and the folder of one run."""

    request: Request
    folder: Path
    tools: Tools

    def job(self, *lines: str, tag: str = TAG) -> Job:
        """A job whose ranks run these lines of bash."""
        plan = _with_commands(self.request.plan, lines)
        roots = {role: str(self.folder / role) for role in self.request.binding.roots}
        binding = attrs.evolve(self.request.binding, roots=roots)
        hooks = self.request.session.hooks
        files = tree(
            plan,
            binding,
            lambda s, p, b: hooks.need("render_job", step=s, plan=p, binding=b),
            Sources(run_file=""),
        )
        run = self.folder / "run"
        for name, content in files.items():
            (run / name).parent.mkdir(parents=True, exist_ok=True)
            (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        (run / "logs").mkdir(exist_ok=True)
        step = plan.step_named("train")
        assert step is not None
        submit = hooks.need("render_job", step=step, plan=plan, binding=binding).submit
        return job_of(Order(step="train", directory=str(run), submit=submit, binding=binding), tag)

    def submit(self, job: Job, tag: str = TAG) -> str:
        return str(self.request.session.hooks.call("submit_job", job=job, tag=tag, tools=self.tools))

    def query(self, *ids: str) -> tuple[JobState, ...]:
        words = {"tags": (), "account": "", "project": False, "tools": self.tools}
        return tuple(self.request.session.hooks.call("query_jobs", ids=ids, **words))

    def cancel(self, *ids: str) -> object:
        return self.request.session.hooks.call("cancel_jobs", ids=ids, tools=self.tools)

    def until(self, ident: str, awaited: str, is_there: Callable[[JobState], bool]) -> JobState:
        """Wait for a job's state; what the logs say is in the message."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if states := [job for job in self.query(ident) if is_there(job)]:
                return states[0]
            time.sleep(0.2)
        pytest.fail(f"{awaited}: {self.query(ident)} after {SECONDS} s\n{self.log}", pytrace=False)

    @property
    def log(self) -> str:
        return "".join(
            path.read_text(errors="replace") for path in sorted((self.folder / "run/logs").glob("*"))
        )


class LiveChecks(AnswerBase):
    """What no recorded answer can show."""

    @pytest.fixture
    def real(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
        """The scheduler that is here; the home of its jobs is the test's own folder."""
        if not self.live:
            pytest.skip("this computer has no such scheduler (`live`)")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        return Scheduler(self.subject_here().request, tmp_path, Tools(dict(os.environ)))

    def test_ranks_of_two_nodes_know_who_they_are(self, real: Scheduler) -> None:
        ident = real.submit(real.job(WHO))
        ended = real.until(ident, "its end", lambda job: job.state.over)
        none([] if ended.state is State.DONE else [f"a job that ends well is {ended.state.value}", real.log])
        lines = sorted(line for line in real.log.splitlines() if line.startswith("who "))
        expected = [f"who {rank} {rank % 2} {rank // 2} 4 2 2 head" for rank in range(4)]
        none(
            [] if lines == expected else lines,
            f"rank, local rank, node, world, nodes, GPUs: not {expected}, but",
        )

    def test_a_rank_that_fails_fails_the_job(self, real: Scheduler) -> None:
        ident = real.submit(real.job("[[ $HPC_RANK != 1 ]] || exit 3", "sleep 300"))
        ended = real.until(ident, "its failure, which must end the other ranks", lambda job: job.state.over)
        none([] if ended.state is State.FAILED else [f"a job whose rank failed is {ended.state.value}"])
        code = json.loads((real.folder / "run/steps/train/exit").read_text())["code"]
        none([] if code else ["its exit code is 0"])

    def test_a_job_can_be_cancelled_twice(self, real: Scheduler) -> None:
        ident = real.submit(real.job("touch began.$HPC_RANK", "exec sleep 300"))
        real.until(ident, "its begin", lambda job: job.state is State.RUNNING)
        for _ in range(2):
            answer = real.cancel(ident)
            none([] if answer is True else [f"cancel_jobs answers {answer!r}, not True"])
        ended = real.until(ident, "its end", lambda job: job.state.over)
        none([] if ended.state is State.CANCELLED else [f"a cancelled job is {ended.state.value}"])

    def test_a_job_that_is_handed_over_twice_trains_once(self, real: Scheduler) -> None:
        job = real.job("echo trained >>count")
        for ident in [real.submit(job) for _ in range(2)]:
            real.until(ident, "its end", lambda job: job.state.over)
        trained = (real.folder / "run/count").read_text().count("trained")
        none([] if trained == 4 else [f"4 ranks trained {trained} times: one tag, one job"])

    def test_no_job_is_made_up(self, real: Scheduler) -> None:
        jobs = [job for job in real.query("424242424") if job.id == "424242424"]
        none(f"a job that never was is {job.state.value}" for job in jobs)


def _with_commands(plan: Plan, lines: tuple[str, ...]) -> Plan:
    """Training alone, outside of any environment."""

    def changed(planned: PlannedStep) -> PlannedStep:
        step = attrs.evolve(planned.step, commands=tuple(map(Raw, lines)), inside=False, after=())
        around = attrs.evolve(planned.around, env=(), task=(), job=(), node=())
        return attrs.evolve(planned, step=step, around=around)

    return attrs.evolve(plan, steps=tuple(changed(p) for p in plan.steps if p.step.trains))
