"""What the commands that work on a compute node share: their options, their session, their end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from hpctrain.cli.doing import Doing
from hpctrain.cli.opening import one, run_options
from hpctrain.cli.out import Out
from hpctrain.cli.submit import lock_first
from hpctrain.errors import ConfigError, JobFailed
from hpctrain.model.duration import Duration
from hpctrain.model.frozen import frozen
from hpctrain.model.job import State
from hpctrain.model.run import Resources
from hpctrain.plan.goal import Goal
from hpctrain.render.graph import Graph
from hpctrain.run import start
from hpctrain.run.directory import RunDirectory
from hpctrain.run.goals import modest
from hpctrain.run.status import StepState
from hpctrain.run.tools import Tools
from hpctrain.session import Session

F = TypeVar("F", bound=Callable[..., Any])
TICK_SECONDS = 0.5


def _length(_: click.Context, __: click.Parameter, value: str | None) -> Duration | None:
    """`30m`, `1:30:00`."""
    try:
        return Duration.parse(value) if value is not None else None
    except ValueError as error:
        raise ConfigError.of("wrong-value", str(error), where="--time", hint="--time 30m") from None


def node_options(function: F) -> F:
    """--nodes, --gpus, --time and --queue, over those that open a run."""
    for option in (
        click.option("--queue", default="", metavar="NAME", help="a queue of the cluster"),
        click.option("--time", "length", callback=_length, metavar="TIME", help="how long it may take: 30m"),
        click.option("--gpus", type=click.IntRange(1), help="GPUs in all"),
        click.option("--nodes", type=click.IntRange(1), help="nodes; one without it"),
    ):
        function = option(function)
    return run_options(function)


@attrs.frozen(kw_only=True, slots=False)
class Asked:
    """The options of a command, as click gives them."""

    run_file: Path | None
    on: Sequence[str]
    sets: Sequence[str]
    account: str | None
    nodes: int | None = None
    gpus: int | None = None
    length: Duration | None = None
    queue: str = ""

    @cached_property
    def _plain(self) -> Session:
        return one(self.run_file, self.on, self.sets, self.account)

    def facts(self, table: str) -> Mapping[str, Any]:
        """What the cluster's own `[facts.TABLE]` says."""
        found = self._plain.cluster.facts.get(table, {})
        return found if isinstance(found, Mapping) else {}

    def session(self, usual: Duration, goal: Callable[[Session, Resources], Goal]) -> Session:
        """The session of this goal, which asks for what was said, else for one node for `usual`."""
        plain = self._plain
        said = Resources(nodes=self.nodes, gpus=self.gpus, time=self.length, queue=self.queue)
        resources = modest(said, plain.run, plain.cluster, usual)
        return Session(environ=plain.environ, raw=plain.raw, account=None, goal=goal(plain, resources))


def below(session: Session) -> str:
    """This folder as seen from the run file's own; that one when we stand elsewhere."""
    here, base = os.path.realpath("."), os.path.realpath(session.raw.base)
    return os.path.relpath(here, base) if f"{here}/".startswith(f"{base}/") and here != base else ""


@frozen(kw_only=True)
class Held:
    """A run with a job that this command looks after, and ends when it ends itself."""

    out: Out
    run: RunDirectory
    graph: Graph
    session: Session
    tools: Tools
    step: str

    def steps(self) -> Mapping[str, StepState]:
        """The state of each step now."""
        hooks, environ = self.session.hooks, self.session.environ
        found = start.status_of(self.run, self.graph, hooks, self.tools, environ)
        return {s.step: s for s in found.steps}

    def until_started(self, sign: Path) -> None:
        """Wait for the job to leave `sign`; why it waits is said once. JobFailed when it cannot start."""
        said = ""
        while not sign.exists():
            found = self.steps()
            self.refuse_failed(found)
            mine = found[self.step]
            if mine.state.over:
                return
            reason = mine.reason if mine.state is State.QUEUED else ""
            if reason not in ("", said):
                self.out.say(f"queued: {reason}")
            said = reason or said
            time.sleep(TICK_SECONDS)

    def refuse_failed(self, found: Mapping[str, StepState]) -> None:
        """JobFailed when an earlier step ended badly, so that ours never starts."""
        for name, state in found.items():
            if name != self.step and state.state in (State.FAILED, State.CANCELLED):
                raise JobFailed.of(
                    "job-failed",
                    f"{self.run.title}: step {name} {state.state.value}",
                    hint=f"hpctrain logs {self.run.title} {name}",
                )

    def end(self) -> None:
        """End whatever still runs or waits; no allocation stays behind."""
        jobs = start.jobs_of(self.run, self.graph, self.session.hooks, self.tools, self.session.environ)
        start.cancel(self.run, self.session.hooks, self.tools, jobs)


def hold(out: Out, session: Session, step: str) -> Held:
    """Lock, judge and submit the session's goal."""
    tools = start.tools_for(session)
    lock_first(out, session, tools, locked=False)
    out.warn(start.judge(session, tools))
    with Doing(out, len(session.plan().steps)) as doing:
        run, _ = start.submit(session, tools, doing.tell)
    return Held(out=out, run=run, graph=start.graph_of(run), session=session, tools=tools, step=step)
