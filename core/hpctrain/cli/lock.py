"""`hpctrain lock`: pin every moving name, for one cluster or several."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.opening import many, run_options
from hpctrain.cli.out import Out
from hpctrain.errors import HpctrainError
from hpctrain.lock import path_of
from hpctrain.run import start
from hpctrain.ui.table import Column, Table


@click.command("lock")
@run_options
@click.pass_obj
def command(
    out: Out, run_file: Path | None, on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    """Ask for the versions, revisions and digests of today and write them beside the run file."""
    found: dict[str, list[dict[str, str]]] = {}
    written = ""
    for name, session, refused in many(run_file, on, sets, account):
        if session is None:
            raise refused or HpctrainError()
        pins = start.lock(session, start.tools_for(session))
        written = str(path_of(session.raw.path))
        found[session.cluster.name or name] = [
            {"kind": p.kind, "name": p.name, "value": p.value} for p in pins
        ]
    if out.flags.json:
        out.document("lock", path=written, pins=found)
        return 0
    table = Table(
        Column("CLUSTER", drop=1), Column("NAME", style="name"), Column("PINNED TO"), Column("KIND", drop=2)
    )
    for name, rows in found.items():
        for row in rows:
            table.row(name, row["name"], row["value"].split(" ")[0], row["kind"])
    out.lines(table.lines(out.term))
    out.say(f"wrote {written}")
    return 0
