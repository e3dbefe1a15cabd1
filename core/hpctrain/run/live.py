"""A run whose directory is written: the state of its steps, and how it is cancelled or continued.

Nothing is planned here. The directory's `graph.json` and the scheduler's plugin are all that it takes, so a
run outlives the run file that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from hpctrain.errors import SubmitError
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import names, switched_off
from hpctrain.model.job import Allocation, Event, JobState, State
from hpctrain.model.names import GRAPH
from hpctrain.model.words import Loc
from hpctrain.render.graph import Graph, Node
from hpctrain.render.graph import read as read_graph
from hpctrain.render.shell import plain, quoted
from hpctrain.run.disk import secrets
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.executor import OnProgress, Outcome, Services, execute
from hpctrain.run.steps.poll import Poll
from hpctrain.run.steps.status import Run, RunState, StepState, states
from hpctrain.run.steps.submit import submissions
from hpctrain.run.system.tools import Tools
from hpctrain.run.this_computer import now, state_folder
from hpctrain_job.files import trust

if TYPE_CHECKING:
    from hpctrain.run.output.metrics import Metrics


def _silent(event: str, node: Node, detail: str) -> None:
    """Who uses the library sees the progress in the states."""


@frozen(kw_only=True)
class LiveRun:
    """A run that was started: its states, metrics and logs; how it is waited for, cancelled or continued.

    It is read from its directory alone: the run file may be gone.
    """

    directory: RunDirectory
    """Where it lies: `.title`, `.path`."""
    graph: Graph
    """Its steps and their order, as they were planned."""
    hooks: Hooks
    """The scheduler's hooks, and the observers'."""
    tools: Tools
    """What its scheduler's programs are started with."""
    environ: Mapping[str, str]
    """The variables of whoever opened it."""

    @classmethod
    def open(cls, directory: RunDirectory, environ: Mapping[str, str]) -> LiveRun:
        """The run of a directory alone: its scheduler's plugin is loaded, no other of its plugins."""
        return opened_run(directory, environ, lambda scheduler: scheduler_hooks(scheduler, environ))

    def status(self) -> RunState:
        """The run's state: its jobs' own records, then one question to the scheduler."""
        return statuses([self])[0]

    def states(self) -> dict[str, State]:
        """Each step's state now."""
        return {step.step: step.state for step in self.status().steps}

    def wait(self, *, timeout: float, on_tick: Callable[[RunState], object] | None = None) -> RunState:
        """Wait until the run is over, at most `timeout` seconds, and return its state.

        `on_tick` hears the newest state about once a second while it waits.

        JobFailed where a step failed or was cancelled, with the surest cause that `diagnose` sees. TimedOut
        where the time was too short: the run goes on. A step in the state WAITING needs `resume`.
        """
        from hpctrain.run import waiting  # `submit` need not wait

        interval = max(1.0, self.graph.poll_seconds)
        state = waiting.wait_until_over(
            self.directory, self.status, timeout=timeout, interval=interval, on_tick=on_tick
        )
        step = waiting.ended_badly(state)
        self._tell_ends(state)
        self.remove_secrets()
        if step is not None:
            raise waiting.failure(self.directory, step, self.environ)
        return state

    def _tell_ends(self, state: RunState) -> None:
        """Pass the ends of jobs to the observing hooks; steps that ran here were told as they ended."""
        for step in state.steps:
            if step.job and step.state.over:
                self.hooks.tell(
                    event=Event(
                        kind=step.state.value,
                        run=self.directory.title,
                        step=step.step,
                        job=step.job,
                        state=step.state,
                        at=now(),
                        detail={"reason": step.reason} if step.reason else {},
                    )
                )

    def metrics(self) -> Metrics:
        """What the training wrote or printed so far: losses, rates, evaluations."""
        from hpctrain.run.output.metrics import metrics_of  # `submit` reads none

        return metrics_of(self.directory)

    def log(self, step: str | None = None, *, rank: int | None = None, lines: int = 1_000_000) -> list[str]:
        """The last lines of a step's log; without a step of the last that wrote one, rank 0 where there are
        several. ConfigError where there is none yet."""
        from hpctrain.run.output import logs  # `submit` reads none

        steps = logs.chosen_steps(steps_of(self.directory), step)
        path = logs.newest_log(self.directory, steps, rank)
        return [logs.last_state(line) for line in logs.last_lines(path, lines)]

    def checkpoints(self) -> Path | None:
        """The folder in which the trainer saves; None where it does not declare one."""
        layout = self.directory.layout
        if layout is None:
            return None
        folder = f"{self.graph.name}/{self.directory.own_name}"
        return Path(plain(Loc("checkpoints", folder), self.graph.binding), layout.folder)

    def stop_file(self) -> str:
        """Where a file ends a training of several jobs: shared with the project where the site has such a
        place. Empty for a training of one job."""
        return next(reversed(self._stop_files()), "")

    def _stop_files(self) -> tuple[str, ...]:
        """Every path that the jobs of a chain look at; the one for all who work on it comes last."""
        links = next((node.links for node in self.graph.nodes if node.links), None)
        if links is None:
            return ()
        private = str(self.directory.path / "stop")
        if links.stop is None or not isinstance(self.graph.binding.roots.get(links.stop.role), str):
            return (private,)
        return (private, plain(links.stop, self.graph.binding) + self.directory.own_name)

    def in_progress(self) -> bool:
        """Whether somebody or something works on one of its steps now."""
        return self.status().is_in_progress

    def jobs(self) -> dict[str, str]:
        """The jobs that are not over, by step."""
        steps = self.status().steps
        return {step.step: step.job for step in steps if step.job and not (step.state.over or step.ending)}

    def cancel(self, jobs: Mapping[str, str] | None = None) -> None:
        """End these jobs, named by step, and put it on record; without any named, all that are not over."""
        jobs = self.jobs() if jobs is None else jobs
        if not jobs:
            self.remove_secrets()
            return
        ids = dict.fromkeys((*jobs.values(), *self._end_chains(jobs)))
        self.hooks.need("cancel_jobs", ids=tuple(ids), tools=self.tools)
        entries = self.directory.record.read()
        for step in jobs:
            for submission in submissions(entries, step):
                if submission.job in ids:
                    self.directory.record.append(
                        "cancelled", step=step, tag=submission.tag, job=submission.job
                    )
        self.remove_secrets()

    def _end_chains(self, steps: Iterable[str]) -> list[str]:
        """Mark the chains of these steps as ended, for a job that starts now; the ids of their jobs."""
        chains = {s.step: s.chain.jobs for s in self.status().steps if s.chain and s.step in steps}
        if chains:
            from hpctrain_job import attempts  # most runs have no chain
            from hpctrain_job.chain import decision

            for step in chains:
                attempts.Step(self.directory.path, step).end(decision.Cause.CANCELLED.value)
        return [job for jobs in chains.values() for job in jobs]

    def secrets_left(self) -> tuple[str, ...]:
        """The steps that are over and whose tokens are still on the disk.

        A job that is signalled keeps them, because it may be queued again under its id; one that is killed or
        never starts cannot remove them.
        """
        folder = secrets.folder(self.graph, self.directory)
        steps = secrets.placed(folder) if folder else ()
        if not steps:
            return ()
        over = {step.step for step in self.status().steps if step.state.over or step.ending}
        return tuple(step for step in steps if step in over)

    def remove_secrets(self) -> None:
        """Delete the tokens of every step that is over."""
        folder = secrets.folder(self.graph, self.directory)
        if folder:
            for step in self.secrets_left():
                secrets.remove(folder, step)

    def resume(self, on_progress: OnProgress | None = None) -> Outcome:
        """Do what is left of the run: steps that waited, jobs that ended badly."""
        self.remove_secrets()
        steps = self.status().steps
        ending = next((step for step in steps if step.ending), None)
        if ending is not None:
            raise SubmitError.of(
                "job-ending",
                f"job {ending.job} of step {ending.step} was cancelled and has not ended yet",
                hint=f"hpctrain status {self.directory.title}      (then continue)",
            )
        self._need_no_stop_file(steps)
        return execute(
            self.directory,
            self.graph,
            self._services(on_progress or _silent),
            {s.step: s.state for s in steps},
            {s.step: s.chain for s in steps if s.chain},
        )

    def _need_no_stop_file(self, steps: Iterable[StepState]) -> None:
        """Every job of a chain would end as soon as it begins."""
        path = next((path for path in self._stop_files() if Path(path).exists()), None)
        if path is None or all(step.state is State.DONE for step in steps if step.chain):
            return
        raise SubmitError.of(
            "stop-file",
            f"{path} is there, so each job would end at once",
            hint=f"rm {quoted(path)}      (then continue)",
        )

    def execute(self, on_progress: OnProgress, allocation: Allocation | None = None) -> Outcome:
        """Execute a new run; in an `allocation` every step runs here and no job is submitted."""
        return execute(self.directory, self.graph, self._services(on_progress, allocation))

    def _poll(self) -> Poll:
        return Poll(
            query=self._query,
            cache=state_folder(self.environ) / "polls" / f"{self.graph.cluster}.json",
            floor_s=self.graph.poll_seconds,
        )

    def _query(self, ids: tuple[str, ...], tags: tuple[str, ...]) -> Iterable[JobState]:
        return query_jobs(self.hooks, self.graph.account, self.tools, ids, tags)

    def _services(self, on_progress: OnProgress, allocation: Allocation | None = None) -> Services:
        from hpctrain.runfile.layers.settings import read_settings  # `status` asks for no token

        return Services(
            submit=lambda job, tag: self.hooks.need("submit_job", job=job, tag=tag, tools=self.tools),
            query=self._query,
            tools=self.tools,
            environ=self.environ,
            on_progress=on_progress,
            on_event=lambda event: self.hooks.tell(event=event),
            secrets=read_settings(self.environ).secrets,
            allocation_env=allocation.env if allocation else None,
        )


def opened_run(
    directory: RunDirectory, environ: Mapping[str, str], hooks_of: Callable[[str], Hooks]
) -> LiveRun:
    """The run of a directory, with the hooks of its scheduler."""
    graph = graph_of(directory)
    return LiveRun(
        directory=directory,
        graph=graph,
        hooks=hooks_of(graph.scheduler),
        tools=Tools(environ, keep=graph.submit_env),
        environ=environ,
    )


def statuses(runs: Sequence[LiveRun]) -> list[RunState]:
    """The states of runs of one cluster, with one question to its scheduler for all of them."""
    described = [Run(directory=run.directory.path, nodes=run.graph.nodes) for run in runs]
    return states(described, runs[0]._poll()) if runs else []


def graph_of(directory: RunDirectory) -> Graph:
    """What the run's directory says of its steps; IntegrityError where it may be another user's word."""
    directory.need_own()
    graph = read_graph(directory.path / GRAPH)
    directory.need_trusted(trust.Accepted(graph.owners.get("runs", ())))
    return graph


def steps_of(directory: RunDirectory) -> list[str]:
    """The names of the run's steps, in their order."""
    return [node.name for node in graph_of(directory).nodes]


def query_jobs(
    hooks: Hooks,
    account: str,
    tools: Tools,
    ids: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    *,
    project: bool = False,
) -> Iterable[JobState]:
    """What the scheduler knows of these jobs; of all yours, or the project's, when none are named."""
    states: Iterable[JobState] = hooks.need(
        "query_jobs", ids=ids, tags=tags, account=account, project=project, tools=tools
    )
    return states


def scheduler_hooks(scheduler: str, environ: Mapping[str, str]) -> Hooks:
    """What a run needs after it was rendered: its scheduler, and the observers."""
    disabled = switched_off(environ)
    hooks = Hooks(trace=bool(environ.get("HPCTRAIN_TRACE")), disabled=disabled)
    observers = [("hooks", name) for name in names("hooks") if name not in disabled]
    for kind, name in (("schedulers", scheduler), *observers):
        entry = loading.find(kind, name)
        hooks.add(entry, loading.load(entry))
    return hooks
