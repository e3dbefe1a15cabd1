"""`hpctrain runs`: your runs, newest first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hpctrain.cli.commands.status import STYLES
from hpctrain.cli.out import Out
from hpctrain.errors import HpctrainError
from hpctrain.model.job import State
from hpctrain.run.live import LiveRun
from hpctrain.run.metrics import metrics_file
from hpctrain.run.registry import Entry, Registry
from hpctrain.run.spent import job_spans, moment, node_hours, running_jobs
from hpctrain.run.status import StepState
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table

ROW_LIMIT = 20


@click.command("runs")
@click.option("--all", "everything", is_flag=True, help="older ones too")
@click.option("--scan", multiple=True, type=click.Path(path_type=Path), help="find the runs below a folder")
@click.pass_obj
def command(out: Out, everything: bool, scan: tuple[Path, ...]) -> int:
    """List the runs, with one query to each scheduler."""
    registry = Registry.of(out.environ)
    if scan:
        out.say(f"found {registry.scan(path.absolute() for path in scan)} more runs")
    entries = [e for e in reversed(registry.entries()) if e.run.exists()]
    rows = [_row(out, entry) for entry in (entries if everything else entries[:ROW_LIMIT])]
    if out.flags.json:
        out.document("runs", runs=rows)
        return 0
    table = Table(
        Column("RUN", style="name"),
        Column("ON"),
        Column("STATE"),
        Column("STEP", right=True, drop=3),
        Column("LOSS", right=True, drop=2),
        Column("NODE-HOURS", right=True, drop=4),
        Column("STARTED", drop=1),
    )
    for row in rows:
        newest = row["metrics"]
        table.row(
            row["run"],
            row["cluster"],
            (STYLES.get(State(row["state"]), ""), row["state"]),
            text.short(newest.get("step")) if newest else "-",
            text.number(newest.get("loss")) if newest else "-",
            text.hours(row["node_hours"]),
            text.age(moment(row["time"]), time.time()),
        )
    out.lines(table.lines(out.term))
    left = len(entries) - len(rows)
    if left > 0:
        out.say(f"{left} more: hpctrain runs --all")
    return 0


def _row(out: Out, entry: Entry) -> dict[str, Any]:
    run = entry.run
    state, steps = _states(out, entry)
    return {
        "run": run.title,
        "path": str(run.path),
        "cluster": entry.cluster,
        "state": state.value,
        "time": entry.time,
        "node_hours": node_hours(job_spans(run, running_jobs(steps))),
        "metrics": dict(metrics_file(run).last),
    }


def _states(out: Out, entry: Entry) -> tuple[State, tuple[StepState, ...]]:
    """`unknown` where this machine cannot say: another cluster's run on a shared disk."""
    try:
        status = LiveRun.open(entry.run, out.environ).status()
    except HpctrainError:
        return State.UNKNOWN, ()
    return status.state, status.steps
