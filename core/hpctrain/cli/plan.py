"""`hpctrain plan`: show what would happen, where, and who decided it."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli import show_plan
from hpctrain.cli.opening import many, one, run_options, stop
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError, Problem, fatal
from hpctrain.model.plan import Plan
from hpctrain.session import Session


@click.command("plan")
@run_options
@click.option("--explain", metavar="NAME", help="who set a variable, word, step or key, and why")
@click.option("--full", is_flag=True, help="every variable, not only the first")
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    explain: str | None,
    full: bool,
) -> int:
    """Show what would happen: steps and places, files, every variable with who set it and why."""
    if "all" in on or len(on) > 1:
        return _table(out, run_file, on, sets, account)
    session = one(run_file, on, sets, account)
    plan = session.plan()
    if explain:
        return _explained(out, plan, explain)
    survey = session.survey()
    if out.flags.json:
        from hpctrain.cli.plan_json import document

        out.document("plan", **document(plan, survey))
        return ConfigError.exit_code if fatal(plan.problems) else 0
    out.lines(show_plan.plan_lines(plan, survey, out.term, full=full))
    stop(fatal(plan.problems))
    out.next(f"hpctrain submit {_file(session)}")
    return 0


def _file(session: Session) -> str:
    return session.raw.document.file


def _explained(out: Out, plan: Plan, what: str) -> int:
    from hpctrain.plan.explain import explain

    entries = explain(plan, what)
    if out.flags.json:
        out.document("explain", name=what, entries=entries)
    else:
        from hpctrain.cli.show_explain import explain_lines

        out.lines(explain_lines(entries, out.term))
    return 0


def _table(
    out: Out, run_file: Path | None, on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    """One row a cluster; 0 when the run fits at least one of them."""
    rows: list[tuple[str, Session | None, Plan | None, HpctrainError | None]] = []
    for name, session, refused in many(run_file, on, sets, account):
        plan, error = None, refused
        if session is not None:
            try:
                plan = session.plan()
            except HpctrainError as raised:
                error = raised
        rows.append((name, session, plan, error))
    if all(plan is None for *_, plan, _ in rows):
        raise ConfigError(*_all_problems(rows))
    if out.flags.json:
        from hpctrain.cli.plan_json import document, refusal

        out.document(
            "plans",
            plans={
                name: document(plan, session.survey()) if plan and session else refusal(error)
                for name, session, plan, error in rows
            },
        )
    else:
        table = show_plan.on_many((name, plan, str(error or "")) for name, _, plan, error in rows)
        out.lines(table.lines(out.term))
    fits = [plan for *_, plan, _ in rows if plan and not any(p.fatal for p in plan.problems)]
    return 0 if fits else 2


def _all_problems(
    rows: list[tuple[str, Session | None, Plan | None, HpctrainError | None]],
) -> list[Problem]:
    found: dict[Problem, None] = {}
    for *_, error in rows:
        found.update(dict.fromkeys(error.problems if error else ()))
    return list(found)
