"""`hpctrain runs`: your runs, newest first."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.show.states import STYLES
from hpctrain.errors import HpctrainError
from hpctrain.model.job import State
from hpctrain.run.live import LiveRun
from hpctrain.run.metrics import metrics_file
from hpctrain.run.registry import Entry, Registry
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
            text.age(_seconds(row["time"]), time.time()),
        )
    out.lines(table.lines(out.term))
    left = len(entries) - len(rows)
    if left > 0:
        out.say(f"{left} more: hpctrain runs --all")
    return 0


def _row(out: Out, entry: Entry) -> dict[str, Any]:
    run = entry.run
    return {
        "run": run.title,
        "path": str(run.path),
        "cluster": entry.cluster,
        "state": _state(out, entry).value,
        "time": entry.time,
        "metrics": dict(metrics_file(run).last),
    }


def _state(out: Out, entry: Entry) -> State:
    """`unknown` where this machine cannot say: another cluster's run on a shared disk."""
    try:
        return LiveRun.open(entry.run, out.environ).status().state
    except HpctrainError:
        return State.UNKNOWN


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
