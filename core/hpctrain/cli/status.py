"""`hpctrain status`: one word for a run and each of its steps."""

from __future__ import annotations

from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.runs_of import state_of
from hpctrain.model.job import State
from hpctrain.run.status import RunState, StepState
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table

STYLES = {State.DONE: "ok", State.FAILED: "error", State.CANCELLED: "warn", State.UNKNOWN: "warn"}


@click.command("status")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Say the state of RUN (the newest without one): from its jobs' own records, then the scheduler."""
    directory, graph, found = state_of(run, out.environ)
    newest = last_metrics(directory.metrics)
    if out.flags.json:
        out.document(
            "status",
            run=directory.title,
            path=str(directory.path),
            cluster=graph.cluster,
            state=found.state.value,
            age_s=round(found.answer.age_s, 1),
            silent=[p.message for p in found.answer.silent],
            steps=[_json(step) for step in found.steps],
            metrics=newest,
        )
        return 0
    out.lines(_header(out, directory.title, graph.cluster, found))
    if newest:
        out.lines(out.term.wrapped(progress_line(newest)))
    out.lines(_table(found).lines(out.term))
    if found.answer.silent:
        out.say(f"the scheduler is silent: {found.answer.silent[0].message}")
    _next(out, directory.title, found)
    return 0


def last_metrics(path: Any) -> dict[str, Any]:
    """The newest training row of a run, or {}."""
    from hpctrain_job.metrics import read

    rows = [row for row in read(path) if "loss" in row]
    return rows[-1] if rows else {}


def progress_line(row: dict[str, Any]) -> str:
    """`step 155   loss 1.214   1,912 tokens/s   mfu 30 %`."""
    parts = [f"step {row.get('step', '?')}", f"loss {text.number(row.get('loss'))}"]
    if row.get("tokens_per_s") is not None:
        parts.append(f"{text.count(round(row['tokens_per_s']))} tokens/s")
    if row.get("mfu") is not None:
        parts.append(f"mfu {text.percent(row['mfu'])}")
    return "   ".join(parts)


def _header(out: Out, title: str, cluster: str, found: RunState) -> list[str]:
    """`guanaco-lora/1 on frontier   RUNNING   job 3141593, 2 nodes, 28m of 1h30m`."""
    word = found.state.value.upper()
    jobs = [step for step in found.steps if step.job]
    shown = next((s for s in jobs if s.state is found.state), jobs[-1] if jobs else None)
    line = f"{title} on {cluster}   {word}" + (f"   {_job(shown)}" if shown else "")
    painted = out.term.paint(STYLES.get(found.state, "heading"), word)
    return [part.replace(word, painted) for part in out.term.wrapped(line)]


def _job(step: StepState) -> str:
    """A job with what the scheduler says of it."""
    parts = [f"job {step.job}"]
    known = step.scheduler
    if known is not None and known.nodes:
        parts.append(f"{len(known.nodes)} node{'s' if len(known.nodes) != 1 else ''}")
    if known is not None and known.elapsed_s is not None and not step.state.over:
        limit = f" of {text.duration(known.limit_s)}" if known.limit_s else ""
        parts.append(f"{text.duration(known.elapsed_s, rough=True)}{limit}")
    return ", ".join(parts)


def _table(found: RunState) -> Table:
    table = Table(Column("STEP", style="name"), Column("STATE"), Column("JOB", drop=1), Column("WHY", drop=2))
    for step in found.steps:
        table.row(step.step, (STYLES.get(step.state, ""), step.state.value), step.job or "-", _why(step))
    return table


def _why(step: StepState) -> str:
    came = f"from {step.origin}" if step.origin and step.state is State.DONE else ""
    return ", ".join(filter(None, (step.reason, came))) or "-"


def _json(step: StepState) -> dict[str, Any]:
    return {
        "step": step.step,
        "state": step.state.value,
        "job": step.job or None,
        "reason": step.reason,
        "exit_code": step.exit_code,
        "attempt": step.attempt,
        "said": step.said,
        "origin": step.origin or None,
    }


def _next(out: Out, title: str, found: RunState) -> None:
    if any(s.state is State.FAILED for s in found.steps):
        out.next(f"hpctrain diagnose {title}")
    elif any(s.state is State.WAITING for s in found.steps) and found.state is State.WAITING:
        out.next(f"hpctrain continue {title}")
    elif not found.state.over:
        out.next(f"hpctrain logs -f {title}")
    else:
        out.next(f"hpctrain metrics {title}")
