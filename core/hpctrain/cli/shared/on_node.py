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
from attrs import frozen

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import open_session, run_options
from hpctrain.cli.shared.step_lines import StepLines
from hpctrain.cli.shared.submitting import lock_first
from hpctrain.errors import ConfigError, JobFailed
from hpctrain.model.duration import Duration
from hpctrain.model.job import State
from hpctrain.model.run import Resources
from hpctrain.plan.goal import Goal
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.live import LiveRun
from hpctrain.run.prepare.goals import modest
from hpctrain.run.steps.status import StepState
from hpctrain.session import Session

F = TypeVar("F", bound=Callable[..., Any])
TICK_SECONDS = 0.5


def _length(_: click.Context, __: click.Parameter, value: str | None) -> Duration | None:
    """A length of time as users write it: `30m`, `1:30:00`."""
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
class NodeRequest:
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
        return open_session(self.run_file, self.on, self.sets, self.account)

    def facts(self, table: str) -> Mapping[str, Any]:
        """What the cluster's own `[facts.TABLE]` says."""
        entry = self._plain.cluster.facts.get(table, {})
        return entry if isinstance(entry, Mapping) else {}

    def session(self, usual: Duration, goal: Callable[[Session, Resources], Goal]) -> Session:
        """The session of this goal, which asks for what was said, else for one node for `usual`."""
        plain = self._plain
        requested = Resources(nodes=self.nodes, gpus=self.gpus, time=self.length, queue=self.queue)
        resources = modest(requested, plain.run, plain.cluster, usual)
        return plain.with_goal(goal(plain, resources))


def below(session: Session) -> str:
    """The current folder relative to the run file's folder; "" when it is not below that folder."""
    folder, base = os.path.realpath("."), os.path.realpath(session.source.base)
    return os.path.relpath(folder, base) if f"{folder}/".startswith(f"{base}/") and folder != base else ""


@frozen(kw_only=True)
class NodeRun:
    """A run with a job that this command looks after, and ends when it ends itself."""

    out: Out
    live: LiveRun
    session: Session
    step: str

    @property
    def run(self) -> RunDirectory:
        """The directory of the run whose job this is."""
        return self.live.directory

    def steps(self) -> Mapping[str, StepState]:
        """The state of each step now."""
        return {step.step: step for step in self.live.status().steps}

    def until_started(self, sign: Path) -> None:
        """Wait for the job to leave `sign`; why it waits is said once. JobFailed when it cannot start."""
        last_reason = ""
        while not sign.exists():
            states = self.steps()
            self.refuse_failed(states)
            step_state = states[self.step]
            if step_state.state.over:
                return
            reason = step_state.reason if step_state.state is State.QUEUED else ""
            if reason not in ("", last_reason):
                self.out.say(f"queued: {reason}")
            last_reason = reason or last_reason
            time.sleep(TICK_SECONDS)

    def refuse_failed(self, states: Mapping[str, StepState]) -> None:
        """JobFailed when an earlier step ended badly, so that ours never starts."""
        for name, state in states.items():
            if name != self.step and state.state in (State.FAILED, State.CANCELLED):
                raise JobFailed.of(
                    "job-failed",
                    f"{self.run.title}: step {name} {state.state.value}",
                    hint=f"hpctrain logs {self.run.title} {name}",
                )

    def end(self) -> None:
        """End whatever still runs or waits; no allocation stays behind."""
        self.live.cancel(self.live.jobs())


def hold(out: Out, session: Session, step: str) -> NodeRun:
    """Lock, judge and submit the session's goal."""
    session = lock_first(out, session, locked=False)
    prepared = session.prepared()
    out.warn(prepared.judge())
    with StepLines(out, len(prepared.plan.steps)) as step_lines:
        live, _ = prepared.submit(step_lines.tell)
    return NodeRun(out=out, live=live, session=session, step=step)
