"""`hpctrain plugins`: what is installed, from which distribution, and why one is unusable."""

from __future__ import annotations

from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.errors import HpctrainError
from hpctrain.hooks import load, specs
from hpctrain.hooks.scan import Entry, installed
from hpctrain.ui.table import Column, Table


@click.command("plugins")
@click.pass_obj
def command(out: Out) -> int:
    """List every plugin with its distribution, version and hooks; a broken one says why."""
    rows = [_row(entry) for found in installed().values() for entry in found]
    rows.sort(key=lambda r: (r["kind"], r["name"]))
    if out.flags.json:
        out.document("plugins", plugins=rows)
        return 0
    table = Table(
        Column("KIND"), Column("NAME", style="name"), Column("FROM", drop=2), Column("HOOKS", drop=1)
    )
    for row in rows:
        hooks = ("error", row["broken"]) if row["broken"] else " ".join(row["hooks"]) or "-"
        table.row(row["kind"], row["name"], f"{row['distribution']} {row['version']}", hooks)
    out.lines(table.lines(out.term))
    return 3 if any(row["broken"] for row in rows) else 0


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": entry.kind,
        "name": entry.name,
        "distribution": entry.distribution,
        "version": entry.version,
        "module": entry.module,
        "hooks": [],
        "broken": "",
    }
    try:
        module = load.load(load.find(entry.kind, entry.name))
    except HpctrainError as error:
        return row | {"broken": str(error)}
    hooks = [n for n in dir(module) if hasattr(specs, n) and hasattr(getattr(module, n), "hpctrain_impl")]
    return row | {"hooks": hooks}
