"""`hpctrain submit`: build what is missing, then submit the jobs."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli import show_plan
from hpctrain.cli.doing import Doing
from hpctrain.cli.opening import one, run_options
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from hpctrain.model.plan import Survey
from hpctrain.run import start
from hpctrain.run.carry import Outcome
from hpctrain.run.directory import RunDirectory
from hpctrain.run.tools import Tools
from hpctrain.session import Session

LONG_MINUTES = 60
"""Work here that is planned to take longer is asked about first."""


@click.command("submit")
@run_options
@click.option("--locked", is_flag=True, help="refuse to pin anything that is not pinned yet")
@click.option("--wait", is_flag=True, help="wait for the jobs; exit 8 when one ends badly")
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    locked: bool,
    wait: bool,
) -> int:
    """Lock what is not pinned, build what is missing here, submit the jobs with their dependencies."""
    session = one(run_file, on, sets, account)
    tools = start.tools_for(session)
    lock_first(out, session, tools, locked=locked)
    begin(out, session, tools)
    with Doing(out, len(session.plan().steps)) as doing:
        run, outcome = start.submit(session, tools, doing.tell)
    return ended(out, run, outcome, wait=wait)


def begin(out: Out, session: Session, tools: Tools) -> Survey:
    """Judge the plan against this machine, show it, and ask before long work here."""
    warnings = start.judge(session, tools)
    survey = session.survey()
    if not out.flags.json:
        out.say(*out.err.wrapped(show_plan.header(session.plan())))
        out.say(*show_plan.steps(session.plan(), survey).lines(out.err))
        out.say(*show_plan.footer(session.plan(), survey))
    out.warn(warnings)
    _agree(out, session, survey)
    return survey


def ended(
    out: Out, run: RunDirectory, outcome: Outcome, *, wait: bool, schema: str = "submit", then: str = ""
) -> int:
    """Report what was started; with `wait`, when its jobs are over."""
    if wait:
        from hpctrain.cli.waiting import wait_for

        if not out.flags.json:
            report(out, run, outcome, schema=schema, then=then)
        wait_for(out, run)
    if not wait or out.flags.json:  # one document: what was submitted, or the problem that it met
        report(out, run, outcome, schema=schema, then=then)
    return 0


def lock_first(out: Out, session: Session, tools: Tools, *, locked: bool) -> None:
    """Pin what the run asks for, unless that was done or forbidden."""
    if session.locked:
        return
    if locked:
        found = "run.lock.toml answers another run file" if session.lock.found else "nothing is pinned"
        raise ConfigError.of(
            "not-pinned", f"{found} for {session.cluster.name}", hint=f"hpctrain lock {session.raw.path.name}"
        )
    start.judge(session, tools)  # what speaks against it must not be said after the lock was written
    pins = start.lock(session, tools)
    if pins:
        names = f"{len(pins)} name{'s' if len(pins) != 1 else ''}"
        out.say(f"pinned {names} for {session.cluster.name} -> {session.raw.path.stem}.lock.toml")


def _agree(out: Out, session: Session, survey: Survey) -> None:
    """Ask before long work here, where somebody can answer."""
    todo = [s for s in session.plan().steps if s.here and not s.waits and not survey.made.get(s.name)]
    long = sum(s.step.minutes for s in todo) > LONG_MINUTES
    if long and out.asks and not out.confirm("begin?", default=True):
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
    out.next(then or f"hpctrain logs -f {run.title}")
