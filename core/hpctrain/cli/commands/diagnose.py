"""`hpctrain diagnose`: why a run failed and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.model.job import State
from hpctrain.run import diagnose
from hpctrain.run.diagnose import Cause, Diagnosis, Line
from hpctrain.run.directory import RunDirectory
from hpctrain.run.find import open_run
from hpctrain.run.status import StepState
from hpctrain.ui.table import facts


@click.command("diagnose")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Look for known failures in what the failed steps of RUN (the newest without one) printed."""
    live = open_run(run, out.environ)
    directory, graph, state = live.directory, live.graph, live.status()
    rules = diagnose.rules_of(directory, out.environ)
    failed = [step for step in state.steps if step.state is State.FAILED]
    causes = {step: diagnose.diagnose(directory, step.step, rules) for step in failed}
    if out.flags.json:
        steps = [_json(directory, step, diagnosis) for step, diagnosis in causes.items()]
        out.document("diagnose", run=directory.title, state=state.state.value, steps=steps)
        return 0
    if not failed:
        out.lines([f"{directory.title} on {graph.cluster}   {state.state.value.upper()}: no step failed"])
    for step, diagnosis in causes.items():
        out.lines([_heading(directory, graph.cluster, step)])
        for pairs in _labelled_facts(directory, step, diagnosis):
            out.lines(facts(pairs, out.term))
    return 0


def _heading(directory: RunDirectory, cluster: str, step: StepState) -> str:
    parts = [f"job {step.job}"] if step.job else []
    parts.append(f"step {step.step}")
    parts.append(step.reason or f"exit {step.exit_code}")
    return f"{directory.title} on {cluster}   FAILED   {', '.join(parts)}"


def _labelled_facts(
    directory: RunDirectory, step: StepState, diagnosis: Diagnosis
) -> Iterator[list[tuple[str, str]]]:
    """Labelled facts of each cause, or what there is to read where no rule helps."""
    for number, cause in enumerate(diagnosis.causes, start=1):
        yield [
            (
                "cause" if len(diagnosis.causes) == 1 else f"cause {number}",
                f"{cause.rule.sure}: {cause.rule.cause}",
            ),
            ("evidence", _place(directory, cause.evidence)),
            ("", cause.evidence.text.strip()),
            *([("", f"also in {len(cause.also)} more logs")] if cause.also else []),
            *([("fix", cause.rule.fix)] if cause.rule.fix else []),
            ("rule", f"{cause.rule.name}, from {cause.rule.source}"),
        ]
    if diagnosis.causes:
        return
    facts = [("cause", "unknown: no rule knows this")]
    if diagnosis.first is not None:
        facts.append(("evidence", f"the first error, {_place(directory, diagnosis.first)}"))
        facts += [("", line) for line in (*diagnosis.first.before, diagnosis.first.text)]
    yield [*facts, ("logs", str(directory.logs / f"{step.step}*.log"))]


def _place(directory: RunDirectory, line: Line) -> str:
    return f"{line.log.relative_to(directory.path)}:{line.number}"


def _json(directory: RunDirectory, step: StepState, diagnosis: Diagnosis) -> dict[str, Any]:
    first = diagnosis.first
    return {
        "step": step.step,
        "job": step.job or None,
        "exit_code": step.exit_code,
        "reason": step.reason,
        "causes": [_cause(directory, cause) for cause in diagnosis.causes],
        "first_error": {"log": _place(directory, first), "text": first.text} if first else None,
    }


def _cause(directory: RunDirectory, cause: Cause) -> dict[str, Any]:
    rule = cause.rule
    return {
        "rule": rule.name,
        "source": rule.source,
        "sure": rule.sure,
        "cause": rule.cause,
        "fix": rule.fix,
        "log": _place(directory, cause.evidence),
        "text": cause.evidence.text,
        "also": [str(path.relative_to(directory.path)) for path in cause.also],
    }
