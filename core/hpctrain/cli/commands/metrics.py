"""`hpctrain metrics`: the same columns for every trainer, of one run or of several side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.show.run_facts import lost_text
from hpctrain.errors import ConfigError
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.find import find
from hpctrain.run.output.metrics import LOST, Metrics, evaluation_rows, lost_rows, metrics_of, training_rows
from hpctrain.ui import text
from hpctrain.ui.plot import plot
from hpctrain.ui.table import Column, Table

ROW_LIMIT = 12
Row = Mapping[str, Any]

HEADINGS = (("loss", "LOSS", 0), ("eval_loss", "EVAL", 0), ("lr", "LR", 3), ("grad_norm", "GRAD", 2),
         ("tokens_per_s", "TOKENS/S", 1), ("mfu", "MFU", 4))  # fmt: skip
"""Column of metrics.jsonl, its heading, and when it leaves where width is short."""
OF_SEVERAL = ("loss", "eval_loss", "tokens_per_s")
"""What is set side by side."""


@click.command("metrics")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--picture", metavar="FILE.svg", help="write the loss as a picture")
@click.option("--all", "everything", is_flag=True, help="every row, not the last few")
@click.pass_obj
def command(out: Out, runs: tuple[str, ...], picture: str | None, everything: bool) -> int:
    """Show loss, learning rate, gradient norm, tokens and rates of RUN; several runs stand side by side."""
    if picture and not picture.endswith(".svg"):
        raise ConfigError.of(
            "usage",
            f"--picture writes SVG, not {picture}",
            hint=f"--picture {Path(picture).with_suffix('.svg')}",
        )
    measured = {
        directory.title: _metrics(directory)
        for directory in (find(run, out.environ) for run in (runs or (None,)))
    }
    if picture:
        out.say(f"wrote {_drawn(picture, measured)}")
    if out.flags.json:
        _documents(out, measured)
        return 0
    for title, metrics in measured.items():
        _plots(out, f" of {title}" if len(measured) > 1 else "", metrics)
    table_rows = [_joined(metrics.rows, lost_too=everything) for metrics in measured.values()]
    steps = sorted({step for rows in table_rows for step in rows})
    latest = steps if everything else steps[-ROW_LIMIT:]
    table = (
        _single_run(table_rows[0], latest)
        if len(measured) == 1
        else _side_by_side(list(measured), table_rows, latest)
    )
    out.lines(table.lines(out.term))
    if len(latest) < len(steps):
        out.say(f"{len(latest)} of {len(steps)} rows: hpctrain metrics {' '.join(measured)} --all")
    for title, metrics in measured.items():
        if lost := lost_text(lost_rows(metrics.rows)):
            out.say(f"{title}: {lost}")
    return 0


def _metrics(directory: RunDirectory) -> Metrics:
    metrics = metrics_of(directory)
    if not metrics.written:
        raise ConfigError.of(
            "no-metrics", f"{directory.title} has no metrics yet", hint=f"hpctrain status {directory.title}"
        )
    return metrics


def _drawn(picture: str, measured: Mapping[str, Metrics]) -> Path:
    """The path of the picture that was written."""
    from hpctrain.cli.show import loss_picture

    (title, metrics), *more_runs = measured.items()
    if more_runs:
        return loss_picture.write_several(picture, measured)
    return loss_picture.write(picture, title, metrics.rows, metrics.evaluations)


def _documents(out: Out, measured: Mapping[str, Metrics]) -> None:
    (title, metrics), *more_runs = measured.items()
    if more_runs:
        out.document("metrics", runs=[{"run": t, "rows": m.rows} for t, m in measured.items()])
    else:
        out.document("metrics", run=title, rows=metrics.rows)


def _plots(out: Out, of_run: str, metrics: Metrics) -> None:
    trained, evaluated = metrics.training, metrics.evaluations
    steps, losses = [row["step"] for row in trained], [row["loss"] for row in trained]
    out.lines(plot(f"loss{of_run}", steps, losses, out.term))
    if evaluated:
        eval_losses = [row["eval_loss"] for row in evaluated]
        out.lines(plot(f"eval_loss{of_run}", [row["step"] for row in evaluated], eval_losses, out.term))


def _joined(rows: Sequence[dict[str, Any]], *, lost_too: bool) -> dict[int, Row]:
    """Training rows by step with the evaluation of their step; one between them is a row for itself."""
    trained = training_rows(rows) + (lost_rows(rows) if lost_too else [])
    by_step: dict[int, dict[str, Any]] = {row["step"]: dict(row) for row in trained}
    for row in evaluation_rows(rows):
        by_step.setdefault(row["step"], {})["eval_loss"] = row["eval_loss"]
    return {step: by_step[step] for step in sorted(by_step)}


def _single_run(rows: Mapping[int, Row], steps: Sequence[int]) -> Table:
    """All columns of one run; EVAL only where it was evaluated."""
    is_evaluated = any("eval_loss" in row for row in rows.values())
    columns = [column for column in HEADINGS if column[0] != "eval_loss" or is_evaluated]
    marks = [Column("NOTE", style="warn")] if any(LOST in row for row in rows.values()) else []
    table = Table(
        Column("STEP", right=True),
        *(Column(name, right=True, drop=drop) for _, name, drop in columns),
        *marks,
    )
    for step in steps:
        noted = [("lost" if LOST in rows[step] else "") for _ in marks]
        table.row(text.count(step), *(_cell(rows[step], name) for name, _, _ in columns), *noted)
    return table


def _side_by_side(titles: Sequence[str], runs: Sequence[Mapping[int, Row]], steps: Sequence[int]) -> Table:
    """What is compared, for each run a column; `-` where it has no row of that step."""
    columns = [
        (name, heading)
        for name, heading, _ in HEADINGS
        if name in OF_SEVERAL and any(row.get(name) is not None for rows in runs for row in rows.values())
    ]
    table = Table(
        Column("STEP", right=True),
        *(
            Column(f"{heading} {title}", right=True, drop=place)
            for place, (_, heading) in enumerate(columns)
            for title in titles
        ),
    )
    for step in steps:
        table.row(
            text.count(step), *(_cell(rows.get(step, {}), name) for name, _ in columns for rows in runs)
        )
    return table


def _cell(row: Row, name: str) -> str:
    value = row.get(name)
    if value is None:
        return "-"
    return text.percent(value) if name == "mfu" else text.number(value)
