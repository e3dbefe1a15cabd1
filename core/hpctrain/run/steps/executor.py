"""Execute a rendered run: steps that run here one after the other, jobs submitted with their dependencies.

Everything it needs lies in the run directory, so a run goes on as it was planned even after hpctrain
was upgraded, and after a kill at any moment: what is made or submitted already is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from attrs import frozen

from hpctrain.errors import HpctrainError, IntegrityError, StepFailed
from hpctrain.model.job import Event, State
from hpctrain.model.step import After, When
from hpctrain.render.graph import Graph, Node
from hpctrain.run.artifacts.artifact import differing
from hpctrain.run.disk import secrets
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.execute import run_step
from hpctrain.run.steps.submit import (
    Order,
    Patience,
    Query,
    Submit,
    resume_submission,
    submission,
    submit_step,
)
from hpctrain.run.system.tools import Tools
from hpctrain.run.this_computer import is_begun, now
from hpctrain_job.files import trust

if TYPE_CHECKING:
    from hpctrain.model.job import ChainState
    from hpctrain.run.steps.links import Links

OnProgress = Callable[[str, Node, str], None]
"""Called with what happens (exists, start, line, done, job or waits), the step and a detail."""

_OWNERS = "hpctrain help not-trusted"

CACHE = "cache"
"""The origin of an asset that an earlier run brought."""

RESUBMITTED = (State.FAILED, State.CANCELLED, State.WAITING)
"""States of a job after which `continue` submits it anew."""


@frozen(kw_only=True)
class Services:
    """What a run is executed with: the scheduler's two hooks, the tools, and who is notified."""

    submit: Submit
    query: Query
    tools: Tools
    environ: Mapping[str, str]
    on_progress: OnProgress
    on_event: Callable[[Event], None]
    secrets: Mapping[str, object] = attrs.field(factory=dict)
    """The table of secrets in the user's settings."""
    patience: Patience | None = None
    allocation_env: Mapping[str, str] | None = None
    """The variables of the allocation in which every step runs; None: jobs are submitted."""


@frozen(kw_only=True)
class Outcome:
    """Job ids by step, and the steps that wait for `hpctrain continue`."""

    jobs: Mapping[str, str]
    waiting: tuple[str, ...] = ()


def execute(
    run: RunDirectory,
    graph: Graph,
    services: Services,
    states: Mapping[str, State] | None = None,
    chains: Mapping[str, ChainState] | None = None,
) -> Outcome:
    """Do what is left of the run; `states` are those of its steps when it is continued, `chains` those of
    steps that several jobs do."""
    run.identify()
    executor = _Executor(run, graph, services, states or {}, chains or {})
    try:
        for node in graph.nodes:
            executor.execute(node)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"hpctrain continue {run.title}") from None
    return Outcome(jobs=executor.jobs, waiting=tuple(executor.waiting))


class _Executor:
    """One pass over the steps of a run: which jobs it submitted, which steps wait."""

    def __init__(
        self,
        run: RunDirectory,
        graph: Graph,
        services: Services,
        states: Mapping[str, State],
        chains: Mapping[str, ChainState],
    ) -> None:
        self.run, self.graph, self.services, self.states = run, graph, services, states
        self.chains = chains
        self.chained = {node.name for node in graph.nodes if node.links}
        self.jobs: dict[str, str] = {}
        self.waiting: list[str] = []
        environ = services.environ
        self.env = {name: environ[name] for name in graph.submit_env if name in environ}
        self.env |= services.allocation_env or {}

    def execute(self, node: Node) -> None:
        """One step: skip it, run it here, submit it, or leave it waiting."""
        if self.is_done(node):
            if self.states.get(node.name) is not State.DONE:
                self.run.record.append("step-exists", step=node.name)
                self.record_origin(node, CACHE)
            self.services.on_progress("exists", node, "")
        elif self.must_wait(node):
            self.waiting.append(node.name)
            self.services.on_progress("waits", node, "")
        elif node.here or self.services.allocation_env is not None:
            self.run_here(node)
        else:
            self.submit(node)

    def is_done(self, node: Node) -> bool:
        """Whether what the step makes exists, or it ended well before."""
        root = self.graph.binding.roots.get(node.makes.role) if node.makes else None
        if node.makes and isinstance(root, str):
            link = Path(root, node.makes.path)
            judged = trust.artifact(str(link), trust.Accepted(self.graph.owners.get(node.makes.role, ())))
            if judged.verdict is trust.Verdict.REFUSED:
                raise IntegrityError.of("not-trusted", f"{judged.path} {judged.reason}", hint=_OWNERS)
            if judged.verdict is trust.Verdict.EXISTS:
                return not (node.checked and self.is_damaged(node, link))
        return self.run.finished(node.name)

    def is_damaged(self, node: Node, link: Path) -> bool:
        """Whether what a later step is about to use differs from what was published: then it is made anew."""
        later = (n for n in self.graph.nodes if any(edge.step == node.name for edge in n.after))
        if all(map(self.is_done, later)):
            return False
        if file := differing(link):
            self.run.record.append("step-damaged", step=node.name, file=file)
        return bool(file)

    def must_wait(self, node: Node) -> bool:
        """Whether an earlier step keeps it from starting now: a job waits for jobs by itself, but no
        scheduler waits for a step of this machine, or knows which job of a chain will be the last."""
        return any(
            edge.step in self.waiting or (edge.step in self.jobs and (node.here or edge.step in self.chained))
            for edge in node.after
        )

    def run_here(self, node: Node) -> None:
        """Run the step on this machine and wait for its end."""
        self.services.on_progress("start", node, "")
        self.place_secrets(node)
        try:
            run_step(
                self.run,
                node.name,
                self.services.tools,
                env=self.env,
                on_line=lambda line: self.services.on_progress("line", node, line),
            )
        except StepFailed:
            self.notify_observers("failed", node, state=State.FAILED)
            raise
        finally:
            self.remove_secrets(node)
        self.record_origin(node, node.origin)
        self.notify_observers("done", node, state=State.DONE)
        self.services.on_progress("done", node, "")

    def submit(self, node: Node) -> None:
        """Hand the step to the scheduler, unless an earlier start did and its job is not over."""
        self.place_secrets(node)
        try:
            jobs = self.jobs_of(node) if node.links else None
            job, is_new = self.job_of(node) if jobs is None else (jobs.first, bool(jobs.new))
        except HpctrainError:
            last = submission(self.run.record.read(), node.name)
            if last is None or last.refused:  # otherwise its job may exist
                self.remove_secrets(node)
            raise
        self.jobs[node.name] = job
        if is_new:
            self.record_origin(node, node.origin)
            self.notify_observers("submitted", node, job=job, state=State.QUEUED)
        self.services.on_progress("job", node, jobs.text if jobs else job)

    def job_of(self, node: Node) -> tuple[str, bool]:
        """The id of the step's job, and whether it was submitted just now."""
        request = (self.order(node), self.run.record, self.services.submit, self.services.query)
        if self.states.get(node.name) not in RESUBMITTED:
            job = resume_submission(*request, self.services.patience)
            if job is not None:
                return job, False
        return submit_step(*request, self.services.patience), True

    def jobs_of(self, node: Node) -> Links:
        """The jobs of a step's chain, with those that were submitted just now."""
        from hpctrain.run.steps.links import Scheduler, hand_over  # most runs have no chain
        from hpctrain_job import attempts

        return hand_over(
            attempts.Step(self.run.path, node.name, self.checkpoints()),
            lambda behind: self.order(node, behind),
            Scheduler(self.run.record, self.services.submit, self.services.query, self.services.patience),
            self.chains.get(node.name),
            is_over=self.states.get(node.name) in RESUBMITTED,
        )

    def checkpoints(self) -> Path | None:
        """Where the run saves; None where only its jobs know it."""
        root = self.graph.binding.roots.get("checkpoints")
        return Path(root, self.graph.name, self.run.own_name) if isinstance(root, str) else None

    def order(self, node: Node, behind: str = "") -> Order:
        """The step as a request to the scheduler, behind the jobs of this pass that it waits for, and behind
        the end of another job of its chain."""
        assert node.submit is not None
        edges = [(edge, self.jobs[edge.step]) for edge in node.after if edge.step in self.jobs]
        edges += [(After(node.name, When.ANY), behind)] if behind else []
        return Order(
            step=node.name,
            directory=str(self.run.path),
            submit=node.submit,
            binding=self.graph.binding,
            after=tuple((After(edge.step, edge.when), job) for edge, job in edges),
            avoid=self.bad_nodes(node),
            env=self.env,
            environ=self.services.environ,
        )

    def bad_nodes(self, node: Node) -> tuple[str, ...]:
        """Nodes that failed, as many as the step's job may be kept away from."""
        avoid, binding = node.avoid, self.graph.binding
        if avoid is None or not is_begun(avoid.place, binding):
            return ()
        from hpctrain.run import bad_nodes  # most users know of none

        owners = self.graph.owners.get(avoid.place.role, ())
        place = bad_nodes.place_at(avoid.place, binding, owners, is_shared=avoid.shared)
        return bad_nodes.report_at(place).avoided(avoid.most)

    def place_secrets(self, node: Node) -> None:
        """Put the step's tokens where its script reads them; the script removes them."""
        folder = secrets.folder(self.graph, self.run)
        if not node.secrets or folder is None:
            return
        tokens = secrets.require(node.secrets, self.services.environ, settings=self.services.secrets)
        self.services.tools.hide(*(token.value for token in tokens))
        secrets.place(tokens, folder, self.run, node.name)

    def remove_secrets(self, node: Node) -> None:
        """Delete the step's tokens where its script cannot have done it."""
        folder = secrets.folder(self.graph, self.run)
        if node.secrets and folder:
            secrets.remove(folder, node.name)

    def record_origin(self, node: Node, origin: str) -> None:
        """Put on record where an asset came from: one of an earlier run cost nothing, and may be old."""
        if node.origin:
            self.run.record.append("asset", step=node.name, origin=origin)

    def notify_observers(self, event: str, node: Node, *, state: State, job: str = "") -> None:
        """Pass an event to the hooks that observe runs."""
        self.services.on_event(
            Event(kind=event, run=self.run.title, step=node.name, job=job, state=state, at=now())
        )
