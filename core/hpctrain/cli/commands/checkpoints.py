"""`hpctrain checkpoints`: what a run saved, whether it is whole, and what was made of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.run.find import open_run
from hpctrain.run.live import LiveRun
from hpctrain.run.outcome.checkpoints import SavedCheckpoint, saved
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table


@click.command("checkpoints")
@click.argument("run", required=False)
@click.option("--verify", is_flag=True, help="read every byte, and compare it with the manifest")
@click.pass_obj
def command(out: Out, run: str | None, verify: bool) -> int:
    """List the checkpoints of RUN (default: the newest): steps, sizes, whole or not, exported, where."""
    live = open_run(run, out.environ)
    model, folder = saved(live, verify=verify), live.checkpoints()
    checkpoints = model.checkpoints if model else ()
    if out.flags.json:
        rows = [_json(checkpoint) for checkpoint in checkpoints]
        place = str(folder) if folder else None
        out.document("checkpoints", run=live.directory.title, folder=place, checkpoints=rows)
        return 0
    if not checkpoints:
        out.say(_nothing(live))
        return 0
    out.lines(_table(checkpoints, time.time()).lines(out.term))
    out.lines([f"below  {folder}"])
    for exported in (path for checkpoint in checkpoints for path in checkpoint.exports):
        out.lines([f"model  {exported}"])
    if model and model.newest and not model.newest.exports:
        out.next(f"hpctrain convert {live.directory.title}")
    return 0


def _table(checkpoints: Sequence[SavedCheckpoint], now: float) -> Table:
    table = Table(
        Column("STEP", right=True),
        Column("SIZE", right=True),
        Column("SAVED", drop=2),
        Column("STATE"),
        Column("EXPORTED", drop=1),
        Column("NAME", style="name", drop=3),
    )
    for checkpoint in checkpoints:
        table.row(
            text.count(checkpoint.step),
            text.size(checkpoint.size),
            text.age(checkpoint.time, now),
            (("ok" if checkpoint.is_whole else "error"), checkpoint.state_words),
            " ".join(path.parent.name for path in checkpoint.exports) or "-",
            checkpoint.path.name,
        )
    return table


def _nothing(live: LiveRun) -> str:
    title, folder = live.directory.title, live.checkpoints()
    if folder is None:
        return f"{title}: its trainer does not say where it saves"
    return f"{title} has no checkpoint yet; they will be in {folder}"


def _json(checkpoint: SavedCheckpoint) -> dict[str, Any]:
    return {
        "step": checkpoint.step,
        "path": str(checkpoint.path),
        "size_bytes": checkpoint.size,
        "time_s": round(checkpoint.time, 3),
        "state": checkpoint.state,
        "whole": checkpoint.is_whole,
        "manifest": checkpoint.has_manifest,
        "exports": [{"format": path.parent.name, "path": str(path)} for path in checkpoint.exports],
    }
