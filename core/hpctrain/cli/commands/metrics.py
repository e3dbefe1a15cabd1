"""`hpctrain metrics`: the same columns for every trainer, as a plot, a table or JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from hpctrain.run.find import find
from hpctrain.run.metrics import metrics_of
from hpctrain.ui import text
from hpctrain.ui.plot import plot
from hpctrain.ui.table import Column, Table

ROW_LIMIT = 12


@click.command("metrics")
@click.argument("run", required=False)
@click.option("--picture", metavar="FILE.svg", help="write the loss as a picture")
@click.option("--all", "everything", is_flag=True, help="every row, not the last few")
@click.pass_obj
def command(out: Out, run: str | None, picture: str | None, everything: bool) -> int:
    """Show loss, learning rate, gradient norm, tokens and rates of RUN."""
    if picture and not picture.endswith(".svg"):
        raise ConfigError.of(
            "usage",
            f"--picture writes SVG, not {picture}",
            hint=f"--picture {Path(picture).with_suffix('.svg')}",
        )
    directory = find(run, out.environ)
    metrics = metrics_of(directory)
    if not metrics.rows:
        raise ConfigError.of(
            "no-metrics", f"{directory.title} has no metrics yet", hint=f"hpctrain status {directory.title}"
        )
    trained, evaluated = metrics.training, metrics.evaluations
    if picture:
        from hpctrain.cli.show.loss_picture import write

        out.say(f"wrote {write(picture, directory.title, trained, evaluated)}")
    if out.flags.json:
        out.document("metrics", run=directory.title, rows=metrics.rows)
        return 0
    steps, losses = [r["step"] for r in trained], [r["loss"] for r in trained]
    out.lines(plot("loss", steps, losses, out.term))
    if evaluated:
        eval_losses = [row["eval_loss"] for row in evaluated]
        out.lines(plot("eval_loss", [row["step"] for row in evaluated], eval_losses, out.term))
    table_rows = _joined(trained, evaluated)
    shown = table_rows if everything else table_rows[-ROW_LIMIT:]
    out.lines(_table(shown, evaluated=bool(evaluated)).lines(out.term))
    if len(shown) < len(table_rows):
        out.say(f"{len(shown)} of {len(table_rows)} rows: hpctrain metrics {directory.title} --all")
    return 0


def _joined(trained: list[dict[str, Any]], evaluated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Training rows with the evaluation of their step; an evaluation between them is a row for itself."""
    rows = {row["step"]: dict(row) for row in trained}
    for row in evaluated:
        rows.setdefault(row["step"], {"step": row["step"]})["eval_loss"] = row["eval_loss"]
    return [rows[step] for step in sorted(rows)]


def _table(rows: list[dict[str, Any]], *, evaluated: bool) -> Table:
    table = Table(
        Column("STEP", right=True),
        Column("LOSS", right=True),
        *([Column("EVAL", right=True)] if evaluated else []),
        Column("LR", right=True, drop=3),
        Column("GRAD", right=True, drop=2),
        Column("TOKENS/S", right=True, drop=1),
        Column("MFU", right=True, drop=4),
    )
    for row in rows:
        table.row(
            text.count(row.get("step")),
            text.number(row["loss"]) if "loss" in row else "-",
            *([_number(row.get("eval_loss"))] if evaluated else []),
            _number(row.get("lr")),
            _number(row.get("grad_norm")),
            _number(row.get("tokens_per_s")),
            text.percent(row["mfu"]) if row.get("mfu") is not None else "-",
        )
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else text.number(value)
