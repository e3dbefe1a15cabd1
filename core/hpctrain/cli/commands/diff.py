"""`hpctrain diff`: compare the same run on several clusters."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import many, run_options
from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.plan.diff import diff
from hpctrain.ui.table import Column, Table


@click.command("diff")
@run_options
@click.pass_obj
def command(
    out: Out, run_file: Path | None, on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    """Show what differs between clusters: resources, steps, commands, variables, scheduler words."""
    plans = []
    for _, session in many(run_file, on, sets, account):
        if isinstance(session, HpctrainError):
            raise session
        plans.append(session.plan())
    if len(plans) < 2:
        raise ConfigError.of("usage", "diff compares two clusters or more", hint="--on A --on B")
    rows, equal_names = diff(plans)
    clusters = [plan.cluster.name for plan in plans]
    if out.flags.json:
        out.document("diff", clusters=clusters, equal=not rows, rows=dict(rows), same=equal_names)
        return 0
    table = Table(Column("", style="name"), *(Column(name) for name in clusters))
    for name, cells in rows:
        table.row(name, *cells)
    table.row("same", f"{len(equal_names)} more rows", *("" for _ in clusters[1:]))
    out.lines(table.lines(out.term))
    return 0
