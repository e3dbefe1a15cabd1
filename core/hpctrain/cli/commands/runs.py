"""`hpctrain runs`: your runs, newest first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.show.states import STYLES
from hpctrain.model.job import State
from hpctrain.run.fleet import opened, states_of
from hpctrain.run.metrics import metrics_file
from hpctrain.run.registry import Entry, Registry
from hpctrain.run.spent import job_spans, moment, node_hours, running_jobs
from hpctrain.run.status import RunState
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
    listed = entries if everything else entries[:ROW_LIMIT]
    states = states_of(opened((entry.run for entry in listed), out.environ))
    rows = [_row(entry, states.get(entry.path)) for entry in listed]
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


def _row(entry: Entry, state: RunState | None) -> dict[str, Any]:
    """`unknown` where this machine cannot say: another cluster's run on a shared disk."""
    run = entry.run
    return {
        "run": run.title,
        "path": str(run.path),
        "cluster": entry.cluster,
        "state": (state.state if state else State.UNKNOWN).value,
        "time": entry.time,
        "node_hours": node_hours(job_spans(run, running_jobs(state.steps if state else ()))),
        "metrics": dict(metrics_file(run).last),
    }
