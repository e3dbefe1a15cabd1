"""`hpctrain lock`: pin every moving name, for one cluster or several."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import many, run_options
from hpctrain.errors import HpctrainError
from hpctrain.lock import path_of
from hpctrain.ui.table import Column, Table


@click.command("lock")
@run_options
@click.pass_obj
def command(
    out: Out, run_file: Path | None, on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    """Resolve current versions, revisions and digests, and write them beside the run file."""
    pins_by_cluster: dict[str, list[dict[str, str]]] = {}
    written = ""
    for name, session in many(run_file, on, sets, account):
        if isinstance(session, HpctrainError):
            raise session
        out.warn(session.loaded.problems)
        written = str(path_of(session.source.path))
        pins_by_cluster[session.cluster.name or name] = [
            {"kind": pin.kind, "name": pin.name, "value": pin.value} for pin in session.relock().pins
        ]
    if out.flags.json:
        out.document("lock", path=written, pins=pins_by_cluster)
        return 0
    table = Table(
        Column("CLUSTER", drop=1), Column("NAME", style="name"), Column("PINNED TO"), Column("KIND", drop=2)
    )
    for name, rows in pins_by_cluster.items():
        for row in rows:
            table.row(name, row["name"], _shown_value(row["value"]), row["kind"])
    out.lines(table.lines(out.term))
    out.say(f"wrote {written}")
    return 0


def _shown_value(value: str) -> str:
    """The version without its hashes; of a list that is one line, what it is a list of."""
    title, bar, _ = value.partition(" | ")
    return title if bar else value.split(" ")[0]
