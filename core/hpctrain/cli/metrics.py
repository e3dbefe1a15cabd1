"""`hpctrain metrics`: the same columns for every trainer, as a plot, a table or JSON Lines."""

from __future__ import annotations

from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.runs_of import find
from hpctrain.errors import ConfigError
from hpctrain.run.directory import RunDirectory
from hpctrain.ui import text
from hpctrain.ui.plot import plot
from hpctrain.ui.table import Column, Table

SHOWN = 12


@click.command("metrics")
@click.argument("run", required=False)
@click.option("--picture", metavar="FILE.svg", help="write the loss as a picture")
@click.option("--all", "everything", is_flag=True, help="every row, not the last few")
@click.pass_obj
def command(out: Out, run: str | None, picture: str | None, everything: bool) -> int:
    """Show loss, learning rate, gradient norm, tokens and rates of RUN."""
    directory = find(run, out.environ)
    rows = rows_of(directory)
    if not rows:
        raise ConfigError.of(
            "no-metrics", f"{directory.title} has no metrics yet", hint=f"hpctrain status {directory.title}"
        )
    trained = [dict(row) for row in rows if row.get("loss") is not None]
    if picture:
        from hpctrain.cli.loss_picture import write

        write(picture, directory.title, trained)
    if out.flags.json:
        out.document("metrics", run=directory.title, rows=rows)
        return 0
    steps, losses = [r["step"] for r in trained], [r["loss"] for r in trained]
    out.lines(plot("loss", steps, losses, out.term))
    out.lines(_table(trained if everything else trained[-SHOWN:]).lines(out.term))
    return 0


def rows_of(run: RunDirectory) -> list[dict[str, Any]]:
    """One row for each step, by step: what the trainer wrote, else what it printed."""
    from hpctrain_job.metrics import newest, read

    return [dict(row) for row in newest(read(run.metrics) or _printed(run))]


def _printed(run: RunDirectory) -> list[dict[str, Any]]:
    """Rows of a log, each with every column of its kind; what the trainer does not print is None."""
    from hpctrain.run.progress import basis, printed
    from hpctrain_job.metrics import COLUMNS, utilisation

    peak, hardware = basis(run)
    return [
        {"time": None, **row}
        if any(name.startswith("eval_") for name in row)
        else {**dict.fromkeys(COLUMNS), **utilisation(row.get("tflops_per_gpu"), peak, hardware), **row}
        for row in printed(run)
    ]


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        Column("STEP", right=True),
        Column("LOSS", right=True),
        Column("LR", right=True, drop=3),
        Column("GRAD", right=True, drop=2),
        Column("TOKENS/S", right=True, drop=1),
        Column("MFU", right=True, drop=4),
    )
    for row in rows:
        table.row(
            text.count(row.get("step")),
            text.number(row.get("loss")),
            _number(row.get("lr")),
            _number(row.get("grad_norm")),
            _number(row.get("tokens_per_s")),
            text.percent(row["mfu"]) if row.get("mfu") is not None else "-",
        )
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else text.number(value)
