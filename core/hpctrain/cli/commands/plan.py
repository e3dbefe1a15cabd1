"""`hpctrain plan`: show what would happen, where, and who decided it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs
import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import attempted, many, open_session, run_options, stop
from hpctrain.cli.show import plan_text as show_plan
from hpctrain.errors import ConfigError, HpctrainError, fatal
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
    session = open_session(run_file, on, sets, account)
    plan = session.plan()
    plan = attrs.evolve(plan, problems=tuple(out.completed(plan.problems)))
    if explain:
        return _explained(out, plan, explain)
    survey = session.survey()
    if out.flags.json:
        from hpctrain.cli.show.plan_json import document

        out.document("plan", **document(plan, survey))
        return ConfigError.exit_code if fatal(plan.problems) else 0
    out.lines(show_plan.plan_lines(plan, survey, out.term, full=full))
    stop(fatal(plan.problems))
    out.next(f"hpctrain submit {_file(session)}")
    return 0


def _file(session: Session) -> str:
    return session.source.document.file


def _explained(out: Out, plan: Plan, topic: str) -> int:
    from hpctrain.plan.explain import explain

    entries = explain(plan, topic)
    if out.flags.json:
        out.document("explain", name=topic, entries=entries)
    else:
        from hpctrain.cli.show.explain import explain_lines

        out.lines(explain_lines(entries, out.term))
    return 0


def _table(
    out: Out, run_file: Path | None, on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    """One row a cluster; 0 when the run fits at least one of them."""
    planned: dict[str, tuple[Session, Plan]] = {}
    refused: dict[str, HpctrainError] = {}
    for name, session in many(run_file, on, sets, account):
        judged = session if isinstance(session, HpctrainError) else attempted(partial(_judged, out, session))
        if isinstance(judged, HpctrainError):
            refused[name] = judged
        else:
            planned[name] = judged
    if not planned:
        raise ConfigError(*dict.fromkeys(problem for error in refused.values() for problem in error.problems))
    if out.flags.json:
        from hpctrain.cli.show.plan_json import document, refusal

        plans = {name: document(plan, session.survey()) for name, (session, plan) in planned.items()}
        out.document("plans", plans=plans | {name: refusal(error) for name, error in refused.items()})
    else:
        from hpctrain.cli.show import plans_text

        out.lines(plans_text.lines({name: plan for name, (_, plan) in planned.items()}, refused, out.term))
    return 0 if any(not fatal(plan.problems) for _, plan in planned.values()) else 2


def _judged(out: Out, session: Session) -> tuple[Session, Plan]:
    """The plan with all that is wrong with it."""
    plan = session.plan()
    return session, attrs.evolve(plan, problems=tuple(out.completed(plan.problems)))
