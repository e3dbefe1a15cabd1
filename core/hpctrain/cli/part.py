"""What `build` and `stage` share: do a part of a run once, and say so when there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hpctrain.cli.doing import Doing
from hpctrain.cli.out import Out
from hpctrain.cli.submit import begin, ended, lock_first
from hpctrain.run import start
from hpctrain.session import Session

F = TypeVar("F", bound=Callable[..., Any])


def part_options(function: F) -> F:
    """--locked and --wait."""
    function = click.option("--wait", is_flag=True, help="wait for the jobs; exit 8 when one ends badly")(
        function
    )
    return click.option("--locked", is_flag=True, help="refuse to pin anything that is not pinned yet")(
        function
    )


def prepare(out: Out, session: Session, *, locked: bool, wait: bool) -> int:
    """Make what is missing of the session's part; jobs of an earlier start are waited for, not doubled."""
    tools = start.tools_for(session)
    lock_first(out, session, tools, locked=locked)
    survey = begin(out, session, tools)
    plan = session.plan()
    assert session.goal is not None
    if all(survey.made.get(step.name) for step in plan.steps):
        _nothing(out, session)
        return 0
    earlier = start.under_way(session, tools)
    with Doing(out, len(plan.steps)) as doing:
        if earlier is None:
            run, outcome = start.submit(session, tools, doing.tell)
        else:
            run, graph = earlier, start.graph_of(earlier)
            outcome = start.go_on(run, graph, session.hooks, tools, session.environ, doing.tell)
    followed = f"hpctrain logs -f {run.title}" if outcome.jobs else _submit(session)
    return ended(out, run, outcome, wait=wait, schema=session.goal.name, then=followed)


def _nothing(out: Out, session: Session) -> None:
    """What exists already, by name; a program gets the same document as otherwise."""
    plan = session.plan()
    assert session.goal is not None
    made = {s.name: s.step.makes.filename for s in plan.steps if s.step.makes}
    if out.flags.json:
        out.document(session.goal.name, run=None, path=None, jobs={}, waiting=[], exists=made)
        return
    out.lines([f"{name}  {file} exists" for name, file in made.items()] or ["nothing is needed"])
    out.next(_submit(session))


def _submit(session: Session) -> str:
    return f"hpctrain submit {session.raw.document.file}"
