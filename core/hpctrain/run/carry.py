"""Carry a rendered run out: steps here one after the other, jobs submitted with their dependencies.

Everything it needs lies in the run directory, so a run goes on as it was planned even after hpctrain
was upgraded, and after a kill at any moment: what is made or submitted already is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from hpctrain.errors import StepFailed
from hpctrain.model.frozen import frozen
from hpctrain.model.job import Event, State
from hpctrain.model.step import After
from hpctrain.render.graph import Graph, Node
from hpctrain.run import secrets
from hpctrain.run.clock import now
from hpctrain.run.directory import RunDirectory
from hpctrain.run.execute import run_step
from hpctrain.run.kept import differing
from hpctrain.run.submit import Order, Patience, Query, Submit, resume_submission, submit_step
from hpctrain.run.tools import Tools

Tell = Callable[[str, Node, str], None]
"""Told what happens: exists, start, line, done, job or waits; the step; a detail."""

CACHE = "cache"
"""The origin of an asset that an earlier run brought."""

AGAIN = (State.FAILED, State.CANCELLED, State.WAITING)
"""States of a job after which `continue` submits it anew."""


@frozen(kw_only=True)
class Crew:
    """Who does the work: the scheduler's two hooks, the tools, and who is told."""

    submit: Submit
    query: Query
    tools: Tools
    environ: Mapping[str, str]
    tell: Tell
    event: Callable[[Event], None]
    secrets: Mapping[str, object] = attrs.field(factory=dict)
    patience: Patience | None = None
    inside: Mapping[str, str] | None = None
    """The variables of the allocation in which every step runs; None: jobs are submitted."""


@frozen(kw_only=True)
class Outcome:
    """Job ids by step, and the steps that wait for `hpctrain continue`."""

    jobs: Mapping[str, str]
    waiting: tuple[str, ...] = ()


def carry(run: RunDirectory, graph: Graph, crew: Crew, states: Mapping[str, State] | None = None) -> Outcome:
    """Do what is left of the run; `states` are those of its steps when it is continued."""
    work = _Work(run, graph, crew, states or {})
    try:
        for node in graph.nodes:
            work.do(node)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"hpctrain continue {run.title}") from None
    return Outcome(jobs=work.jobs, waiting=tuple(work.waiting))


class _Work:
    """One pass over the steps: what was submitted, what waits."""

    def __init__(self, run: RunDirectory, graph: Graph, crew: Crew, states: Mapping[str, State]) -> None:
        self.run, self.graph, self.crew, self.states = run, graph, crew, states
        self.jobs: dict[str, str] = {}
        self.waiting: list[str] = []
        self.env = {k: v for k in graph.submit_env if (v := crew.environ.get(k)) is not None}
        self.env |= crew.inside or {}

    def do(self, node: Node) -> None:
        """One step: skip it, run it here, submit it, or leave it waiting."""
        if self.done(node):
            if self.states.get(node.name) is not State.DONE:
                self.run.record.append("step-exists", step=node.name)
                self.came(node, CACHE)
            self.crew.tell("exists", node, "")
        elif self.behind(node):
            self.waiting.append(node.name)
            self.crew.tell("waits", node, "")
        elif node.here or self.crew.inside is not None:
            self.here(node)
        else:
            self.submit(node)

    def done(self, node: Node) -> bool:
        """Whether what the step makes is there, or it ended well before."""
        root = self.graph.binding.roots.get(node.makes.role) if node.makes else None
        if node.makes and isinstance(root, str) and Path(root, node.makes.path).exists():
            return not (node.checked and self.damaged(node, Path(root, node.makes.path)))
        return self.run.finished(node.name)

    def damaged(self, node: Node, link: Path) -> bool:
        """Whether what a later step is about to use is no longer what was published: it is made anew."""
        later = (n for n in self.graph.nodes if any(a.step == node.name for a in n.after))
        if all(map(self.done, later)):
            return False
        if file := differing(link):
            self.run.record.append("step-damaged", step=node.name, file=file)
        return bool(file)

    def behind(self, node: Node) -> list[str]:
        """The steps before it that keep it from starting now: a job waits for jobs by itself, but no
        scheduler waits for a step of this machine."""
        return [a.step for a in node.after if a.step in self.waiting or (node.here and a.step in self.jobs)]

    def here(self, node: Node) -> None:
        self.crew.tell("start", node, "")
        self.secrets(node)
        try:
            run_step(
                self.run,
                node.name,
                self.crew.tools,
                env=self.env,
                on_line=lambda line: self.crew.tell("line", node, line),
            )
        except StepFailed:
            self.happened("failed", node, state=State.FAILED)
            raise
        self.came(node, node.origin)
        self.happened("done", node, state=State.DONE)
        self.crew.tell("done", node, "")

    def submit(self, node: Node) -> None:
        assert node.submit is not None
        self.secrets(node)
        order = Order(
            step=node.name,
            directory=str(self.run.path),
            submit=node.submit,
            binding=self.graph.binding,
            after=tuple(
                (After(a.step, a.when), self.jobs[a.step]) for a in node.after if a.step in self.jobs
            ),
            env=self.env,
            environ=self.crew.environ,
        )
        known = None
        if self.states.get(node.name) not in AGAIN:
            known = resume_submission(
                order, self.run.record, self.crew.submit, self.crew.query, self.crew.patience
            )
        job = known or submit_step(
            order, self.run.record, self.crew.submit, self.crew.query, self.crew.patience
        )
        self.jobs[node.name] = job
        if known is None:
            self.came(node, node.origin)
            self.happened("submitted", node, job=job, state=State.QUEUED)
        self.crew.tell("job", node, job)

    def secrets(self, node: Node) -> None:
        """Put the step's tokens where its script reads them; the script removes them."""
        root = self.graph.binding.roots.get("state")
        if not node.secrets or not isinstance(root, str):
            return
        tokens = secrets.require(node.secrets, self.crew.environ, settings=self.crew.secrets)
        self.crew.tools.hide(*(token.value for token in tokens))
        secrets.place(tokens, Path(root), self.run, node.name)

    def came(self, node: Node, origin: str) -> None:
        """Put on record where an asset came from: what was here already cost nothing, and may be old."""
        if node.origin:
            self.run.record.append("asset", step=node.name, origin=origin)

    def happened(self, what: str, node: Node, *, state: State, job: str = "") -> None:
        """Tell the observers."""
        self.crew.event(Event(what=what, run=self.run.title, step=node.name, job=job, state=state, at=now()))
