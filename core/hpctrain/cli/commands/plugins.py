"""`hpctrain plugins`: what is installed, from which distribution, what one lacks, and why one is unusable."""

from __future__ import annotations

from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.errors import HpctrainError
from hpctrain.hooks import load, specs
from hpctrain.hooks.scan import Entry, installed, switched_off
from hpctrain.ui.table import Column, Table
from hpctrain.ui.text import ABSENT
from hpctrain_job.lacking import NO_PACKAGE


@click.command("plugins")
@click.pass_obj
def command(out: Out) -> int:
    """List every plugin with its distribution, version and hooks.

    A broken one is shown with the reason, one whose package is missing with the command that installs it.
    """
    off = switched_off(out.environ)
    every = (entry for entries in installed().values() for entry in entries)
    rows = [_row(entry) for entry in every if entry.kind != "hooks" or entry.name not in off]
    rows.sort(key=lambda r: (r["kind"], r["name"]))
    if out.flags.json:
        out.document("plugins", plugins=rows)
        return 0
    table = Table(Column("KIND"), Column("NAME", style="name"), Column("FROM"), Column("HOOKS"))
    reasons: dict[str, list[str]] = {}
    for row in rows:
        hooks = " ".join(row["hooks"]) or ABSENT
        word = ("error", "broken") if row["broken"] else "needs a package" if row["needs"] else hooks
        table.row(row["kind"], row["name"], f"{row['distribution']} {row['version']}", word)
        if reason := row["broken"] or row["needs"]:
            reasons.setdefault(reason, []).append(f"{row['kind']} {row['name']}")
    out.lines(table.lines(out.term))
    for reason, names in reasons.items():  # one missing package is the reason of many
        out.lines(["", *out.term.wrapped(f"{', '.join(names)}: {reason}")])
    return 3 if any(row["broken"] for row in rows) else 0


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": entry.kind,
        "name": entry.name,
        "distribution": entry.distribution,
        "version": entry.version,
        "module": entry.module,
        "hooks": [],
        "needs": "",
        "broken": "",
    }
    try:
        module = load.load(load.find(entry.kind, entry.name))
    except HpctrainError as error:
        if error.problems[0].code == NO_PACKAGE:
            return row | {"needs": error.problems[0].hint}
        return row | {"broken": str(error)}
    hooks = [n for n in dir(module) if hasattr(specs, n) and hasattr(getattr(module, n), "hpctrain_impl")]
    return row | {"hooks": hooks}
