"""What commands that submit share: pin first, judge and show the plan, report what was started."""

from __future__ import annotations

import math

from hpctrain.cli.out import Out
from hpctrain.cli.shared.survived import survived
from hpctrain.cli.show import plan_text as show_plan
from hpctrain.errors import ConfigError
from hpctrain.lock import path_of
from hpctrain.model.plan import Plan, Survey
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.live import LiveRun
from hpctrain.run.prepared import Prepared
from hpctrain.run.steps.executor import Outcome
from hpctrain.session import Session

LONG_MINUTES = 60
"""Work here that is planned to take longer is asked about first."""


def begin(out: Out, prepared: Prepared) -> Survey:
    """Judge the plan against this machine, show it, and ask before long work here."""
    warnings = prepared.judge()
    survey = prepared.survey()
    if not out.flags.json:
        out.say(*out.err.wrapped(show_plan.header(prepared.plan)))
        out.say(*show_plan.steps(prepared.plan, survey).lines(out.err))
        out.say(*show_plan.footer(prepared.plan, survey))
    out.warn(warnings)
    _agree(out, prepared.plan, survey)
    return survey


def ended(
    out: Out, run: LiveRun, outcome: Outcome, *, wait: bool, schema: str = "submit", then: str = ""
) -> int:
    """Report what was started; with `wait`, when its jobs are over."""
    if wait:
        with survived(out, run.directory.title):
            if not out.flags.json:
                report(out, run.directory, outcome, schema=schema, then=then)
            _wait(out, run)
    if not wait or out.flags.json:  # one document: what was submitted, or the problem that it met
        report(out, run.directory, outcome, schema=schema, then=then)
    return 0


def _wait(out: Out, run: LiveRun) -> None:
    """Wait for the end of the run below its line; JobFailed where a step ended badly."""
    from hpctrain.cli.shared.following import Following  # a submission that does not wait pays nothing

    with Following(out, run) as follower:
        run.wait(timeout=math.inf, on_tick=lambda _: follower.tick())


def lock_first(out: Out, session: Session, *, locked: bool) -> Session:
    """The session with what the run asks for pinned now, unless it was pinned before or that is forbidden."""
    if session.locked:
        return session
    cluster, run_file = session.cluster.name, session.source.path
    if locked:
        reason = "run.lock.toml answers another run file" if session.lock.exists else "nothing is pinned"
        raise ConfigError.of("not-pinned", f"{reason} for {cluster}", hint=f"hpctrain lock {run_file.name}")
    session.prepared().judge()  # what speaks against it must not be said after the lock was written
    session = session.relock()
    if session.pins:
        pinned = f"{len(session.pins)} name{'s' if len(session.pins) != 1 else ''}"
        out.say(f"pinned {pinned} for {cluster} -> {path_of(run_file).name}")
    return session


def _agree(out: Out, plan: Plan, survey: Survey) -> None:
    """Ask before long work here, where somebody can answer."""
    todo = [s for s in plan.steps if s.here and not s.waits and not survey.artifact_exists.get(s.name)]
    long = sum(s.step.minutes for s in todo) > LONG_MINUTES
    if long and out.can_ask and not out.confirm("begin?", default=True):
        raise KeyboardInterrupt


def report(out: Out, run: RunDirectory, outcome: Outcome, *, schema: str = "submit", then: str = "") -> None:
    """What was started, where it lies, and what comes next."""
    if out.flags.json:
        out.document(
            schema,
            run=run.title,
            path=str(run.path),
            jobs=dict(outcome.jobs),
            waiting=list(outcome.waiting),
        )
        return
    out.say(f"run    {run.title}   {run.path}")
    if outcome.waiting:
        out.say(f"later  {' '.join(outcome.waiting)}: hpctrain continue {run.title}")
    out.lines([run.title])
    out.next(then or f"hpctrain watch {run.title}")
