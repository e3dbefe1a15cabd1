"""`hpctrain runs`: your runs, newest first."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.show.states import STYLES
from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Entry, Registry
from hpctrain.run.outcome.settled import Outcome, Settled, outcome_of
from hpctrain.run.outcome.spent import moment
from hpctrain.run.watch.fleet import opened, states_of
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
    outcomes = _outcomes(out, listed)
    rows = [_row(entry, outcomes[entry.path]) for entry in listed]
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


def _outcomes(out: Out, listed: Iterable[Entry]) -> dict[Path, Outcome]:
    """Of each run; only those that may have changed since they were over are opened."""
    settled = Settled.of(out.environ)
    recorded = {entry.path: settled.outcome(entry.run) for entry in listed}
    unsettled = [RunDirectory(path) for path, outcome in recorded.items() if outcome is None]
    states = states_of(opened(unsettled, out.environ))
    fresh = {run.path: outcome_of(run, states.get(run.path)) for run in unsettled}
    settled.note(fresh, states)
    return {path: outcome or fresh[path] for path, outcome in recorded.items()}


def _row(entry: Entry, outcome: Outcome) -> dict[str, Any]:
    run = entry.run
    return {
        "run": run.title,
        "path": str(run.path),
        "cluster": entry.cluster,
        "state": outcome.state.value,
        "time": entry.time,
        "node_hours": outcome.node_hours,
        "metrics": dict(outcome.metrics),
    }
