"""`hpctrain diagnose`: why a run failed and how to fix it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from hpctrain.model.job import Rule, State
from hpctrain.run.diagnosis import diagnose, printed
from hpctrain.run.diagnosis.diagnose import Cause, Diagnosis
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.find import open_run
from hpctrain.run.steps.status import StepState
from hpctrain.ui.table import facts

STDIN = "-"
SUFFIXES = (".log", ".out", ".err", ".txt")


@click.command("diagnose")
@click.argument("logs", metavar="[RUN | LOG...]", nargs=-1)
@click.option("--on", "cluster", default="", metavar="CLUSTER", help="where LOG comes from: its rules too")
@click.option("--trainer", default="", metavar="NAME", help="what wrote LOG: its rules too")
@click.pass_obj
def command(out: Out, logs: tuple[str, ...], cluster: str, trainer: str) -> int:
    """Look for known failures in what the failed steps of RUN (the newest without one) printed.

    Or in any LOG: files of other programs, or - for what is piped in.
    """
    may_be_missing = len(logs) == 1 and Path(logs[0]).suffix in SUFFIXES
    if may_be_missing or any(map(_is_log, logs)):
        return _of_logs(out, logs, diagnose.rules_anywhere(out.environ, cluster, trainer))
    if len(logs) > 1 or cluster or trainer:
        message = (
            f"no log {logs[1]!r}" if len(logs) > 1 else "--on and --trainer are for logs that are no run's"
        )
        raise ConfigError.of("usage", message, hint="hpctrain diagnose RUN, or hpctrain diagnose LOG LOG")
    return _of_run(out, logs[0] if logs else None)


def _is_log(word: str) -> bool:
    """Whether a word is a file, a pipe or standard input: a run is a folder or a name."""
    return word == STDIN or (Path(word).exists() and not Path(word).is_dir())


def _of_logs(out: Out, names: Sequence[str], rules: Sequence[Rule]) -> int:
    """What logs tell that are no run's."""
    logs = [_read(name) for name in names]
    diagnosis = diagnose.diagnose_logs(logs, rules)
    if out.flags.json:
        out.document("diagnose", run=None, state=None, steps=[_json(None, diagnosis)])
        return 0
    for pairs in _labelled_facts(diagnosis, ", ".join(log.log for log in logs)):
        out.lines(facts(pairs, out.term))
    return 0


def _read(name: str) -> printed.Printed:
    if name == STDIN:
        return printed.read(sys.stdin.buffer, "standard input")
    try:
        with Path(name).open("rb") as stream:
            return printed.read(stream, name)
    except OSError as error:
        message = f"cannot read {name}: {os.strerror(error.errno or 0).lower()}"
        raise ConfigError.of("no-log", message, hint=shlex.join(("ls", "-l", name))) from None


def _of_run(out: Out, reference: str | None) -> int:
    """What each failed step of a run tells."""
    live = open_run(reference, out.environ)
    directory, graph, state = live.directory, live.graph, live.status()
    rules = diagnose.rules_of(directory, out.environ)
    failed = [step for step in state.steps if step.state is State.FAILED]
    causes = {step: diagnose.diagnose(directory, step, rules) for step in failed}
    if out.flags.json:
        steps = [_json(step, diagnosis) for step, diagnosis in causes.items()]
        out.document("diagnose", run=directory.title, state=state.state.value, steps=steps)
        return 0
    if not failed:
        out.lines([f"{directory.title} on {graph.cluster}   {state.state.value.upper()}: no step failed"])
    for step, diagnosis in causes.items():
        out.lines([_heading(directory, graph.cluster, step)])
        for pairs in _labelled_facts(diagnosis, str(directory.logs / f"{step.step}*.log")):
            out.lines(facts(pairs, out.term))
    return 0


def _heading(directory: RunDirectory, cluster: str, step: StepState) -> str:
    parts = [f"job {step.job}"] if step.job else []
    parts.append(f"step {step.step}")
    parts.append(step.reason or f"exit {step.exit_code}")
    return f"{directory.title} on {cluster}   FAILED   {', '.join(parts)}"


def _labelled_facts(diagnosis: Diagnosis, logs: str) -> Iterator[list[tuple[str, str]]]:
    """Labelled facts of each cause, or what there is to read where no rule helps."""
    for number, cause in enumerate(diagnosis.causes, start=1):
        rule = cause.rule
        yield [
            ("cause" if len(diagnosis.causes) == 1 else f"cause {number}", f"{rule.sure}: {rule.cause}"),
            ("evidence", cause.evidence.place),
            ("", cause.evidence.text.strip()),
            *([("", f"also in {len(cause.also)} more logs")] if cause.also else []),
            *([("fix", rule.fix)] if rule.fix else []),
            *([("more", rule.page)] if rule.page else []),
            ("rule", f"{rule.name}, from {rule.source}"),
        ]
    if diagnosis.causes:
        return
    facts = [("cause", "unknown: no rule knows this")]
    if diagnosis.first is None:
        facts.append(("evidence", "no line looks like an error: read how the log ends"))
    else:
        facts.append(("evidence", f"the first error, {diagnosis.first.place}"))
        facts += [("", line) for line in (*diagnosis.first.before, diagnosis.first.text)]
    yield [*facts, ("logs", logs)]


def _json(step: StepState | None, diagnosis: Diagnosis) -> dict[str, Any]:
    first = diagnosis.first
    return {
        "step": step.step if step else None,
        "job": (step.job or None) if step else None,
        "exit_code": step.exit_code if step else None,
        "reason": step.reason if step else "",
        "causes": [_cause(cause) for cause in diagnosis.causes],
        "first_error": {"log": first.place, "text": first.text} if first else None,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    rule = cause.rule
    return {
        "rule": rule.name,
        "source": rule.source,
        "sure": rule.sure,
        "cause": rule.cause,
        "fix": rule.fix,
        "page": rule.page,
        "log": cause.evidence.place,
        "text": cause.evidence.text,
        "also": list(cause.also),
    }
