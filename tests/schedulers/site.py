"""One scheduler and a folder for its runs: what core does with a rendered step, in a few words."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

from hpctrain.model.job import JobState
from hpctrain.model.plan import Plan
from hpctrain.model.step import After, When
from hpctrain.render.graph import Node
from hpctrain.run.disk.record import Record
from hpctrain.run.steps.poll import Poll
from hpctrain.run.steps.status import Run, StepState, states
from hpctrain.run.steps.submit import Order, Patience, submit_step
from hpctrain.run.system.tools import Tools
from hpctrain_plugins.schedulers import local
from tests.patience import wait_for
from tests.schedulers import build

QUICK = Patience(between=1.0, silent=5.0)


class Site:
    """`scheduler` spoken to with `environ`; each run is a folder below `root`."""

    def __init__(self, scheduler: ModuleType, root: Path, environ: dict[str, str]) -> None:
        self.scheduler, self.root, self.environ = scheduler, root, environ
        self.tools = Tools({"HOME": str(root), "USER": "root", "CANARY": "1", **environ})
        self.query = self._hook("query_jobs")
        self.submit = functools.partial(self._submit)
        self.jobs: list[str] = []
        self.env: dict[str, str] = {}  # what `submit_env` brings of the caller's shell

    def _hook(self, name: str) -> Any:
        function = getattr(self.scheduler, name)
        extra: dict[str, Any] = {} if self.scheduler is local else {"tools": self.tools}
        if extra and name == "query_jobs":
            extra |= {"account": "", "project": False}
        return functools.partial(function, **extra)

    def _submit(self, job: Any, tag: str) -> str:
        return str(self.scheduler.submit_job(job=job, tools=self.tools))

    def order(self, plan: Plan, folder: str = "run", after: tuple[tuple[str, str], ...] = ()) -> Order:
        """Render the only step of `plan` into a run directory."""
        directory = self.root / folder
        bound = build.binding(self.root)
        (planned,) = plan.steps
        rendered = self.scheduler.render_job(step=planned, plan=plan, binding=bound)
        build.write(directory, rendered)
        edges = tuple((After("before", When(when)), job) for when, job in after)
        return Order(
            step=planned.name, directory=str(directory), submit=rendered.submit, binding=bound,
            after=edges, environ=self.environ, env=self.env,
        )  # fmt: skip

    def start(self, plan: Plan, folder: str = "run", after: tuple[tuple[str, str], ...] = ()) -> str:
        """Submit the step and give its job's id."""
        order = self.order(plan, folder, after)
        job = submit_step(order, self.record(folder), self.submit, self.query, QUICK)
        self.jobs.append(job)
        return job

    def record(self, folder: str = "run") -> Record:
        return Record(self.root / folder / "record.jsonl")

    def job(self, ident: str) -> JobState | None:
        """What the scheduler says of one job."""
        return next(iter(self.query((ident,), ())), None)

    def cancel(self, *ids: str) -> None:
        self._hook("cancel_jobs")(ids)

    def status(self, plan: Plan, folder: str = "run") -> StepState:
        """The state of the step as core sees it."""
        nodes = tuple(Node(name=s.name, here=s.here, waits=s.waits) for s in plan.steps)
        poll = Poll(query=self.query, cache=self.root / "poll.json", floor_s=0)
        (found,) = states([Run(directory=self.root / folder, nodes=nodes)], poll)
        return found.steps[0]

    def until(self, plan: Plan, what: str, folder: str = "run", seconds: float = 30) -> StepState:
        """Wait for a state."""
        wait_for(
            f"{what} of {folder}", lambda: self.status(plan, folder).state.value == what, seconds
        )  # fmt: skip
        return self.status(plan, folder)

    def until_over(self, plan: Plan, folder: str = "run", seconds: float = 30) -> StepState:
        wait_for(f"end of {folder}", lambda: self.status(plan, folder).state.over, seconds)
        return self.status(plan, folder)

    def log(self, step: str = "train", folder: str = "run") -> str:
        """All that the step wrote."""
        logs = (self.root / folder / "logs").glob(f"{step}*.log")
        return "".join(path.read_text() for path in sorted(logs))

    def clean(self) -> None:
        self.cancel(*self.jobs)
