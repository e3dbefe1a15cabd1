"""What `build` and `stage` share: do a part of a run once, and say so when there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.step_lines import StepLines
from hpctrain.cli.shared.submitting import begin, ended, lock_first
from hpctrain.model.plan import Plan
from hpctrain.session import Session

F = TypeVar("F", bound=Callable[..., Any])


def part_options(function: F) -> F:
    """Add the options `--locked` and `--wait` to a command."""
    function = click.option("--wait", is_flag=True, help="wait for the jobs; exit 8 when one ends badly")(
        function
    )
    return click.option("--locked", is_flag=True, help="refuse to pin anything that is not pinned yet")(
        function
    )


def prepare(out: Out, session: Session, *, locked: bool, wait: bool) -> int:
    """Make what is missing of the session's part; jobs of an earlier start are waited for, not doubled."""
    assert session.goal is not None
    submit = f"hpctrain submit {session.source.document.file}"
    prepared = lock_first(out, session, locked=locked).prepared()
    survey = begin(out, prepared)
    steps = prepared.plan.steps
    if all(survey.artifact_exists.get(step.name) for step in steps):
        _report_existing(out, prepared.plan, session.goal.name, submit)
        return 0
    earlier = prepared.under_way()
    with StepLines(out, len(steps)) as step_lines:
        if earlier is None:
            run, outcome = prepared.submit(step_lines.tell)
        else:
            run, outcome = earlier, earlier.resume(step_lines.tell)
    title = run.directory.title
    then = f"hpctrain watch {title}" if outcome.jobs else submit
    return ended(out, run, outcome, wait=wait, schema=session.goal.name, then=then)


def _report_existing(out: Out, plan: Plan, schema: str, then: str) -> None:
    """What exists already, by name; a program gets the same document as otherwise."""
    artifacts = {s.name: s.step.makes.filename for s in plan.steps if s.step.makes}
    if out.flags.json:
        out.document(schema, run=None, path=None, jobs={}, waiting=[], exists=artifacts)
        return
    out.lines([f"{name}  {file} exists" for name, file in artifacts.items()] or ["nothing is needed"])
    out.next(then)
