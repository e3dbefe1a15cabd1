"""The metrics of a run: what its trainer wrote, else what it printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.kept_plan import KeptPlan
from hpctrain_job.metrics import COLUMNS, lost, newest, read, utilisation

Row = Mapping[str, Any]
LOST = "lost"
"""The mark of a row that the training went back behind."""


@frozen
class Metrics:
    """The rows of `metrics.jsonl`, or of the log of a trainer that only prints: `row["loss"]`."""

    written: tuple[Row, ...]
    """Every row in the order of writing: of two attempts, one step may be here twice."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each step and kind, by step: of two attempts, the newer.

        What is `"lost": True` was trained by an attempt that was killed, and not again so far.
        """
        marked = (
            {**row, LOST: True} if gone else row
            for row, gone in zip(self.written, lost(self.written), strict=True)
        )
        return [dict(row) for row in newest(marked)]

    @property
    def training(self) -> list[dict[str, Any]]:
        """The rows that have a loss: `step`, `loss`, `lr`, `grad_norm`, `tokens`, `tokens_per_s`, `mfu` …;
        without those that are lost."""
        return training_rows(self.rows)

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The rows of evaluations that are not lost: `step`, `eval_loss` …."""
        return evaluation_rows(self.rows)

    @property
    def last(self) -> Row:
        """The training row that was written last; empty where there is none."""
        return next((row for row in reversed(self.written) if "loss" in row), {})

    @property
    def last_evaluation(self) -> Row:
        """The evaluation that was written last; empty where there is none."""
        return next((row for row in reversed(self.written) if row.get("eval_loss") is not None), {})


def training_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that have a loss, and stand."""
    return [row for row in rows if row.get("loss") is not None and LOST not in row]


def lost_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of training that ended with their attempt, and are not trained again so far."""
    return [row for row in rows if row.get("loss") is not None and LOST in row]


def evaluation_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of evaluations that stand."""
    return [row for row in rows if row.get("eval_loss") is not None and LOST not in row]


def metrics_file(run: RunDirectory) -> Metrics:
    """What the trainer wrote into `metrics.jsonl`; quick, and nothing of a trainer that only prints."""
    return Metrics(tuple(read(run.metrics)))


def metrics_of(run: RunDirectory) -> Metrics:
    """What the trainer wrote, else what it printed."""
    metrics = metrics_file(run)
    return metrics if metrics.written else Metrics(tuple(_printed(run)))


def _printed(run: RunDirectory) -> list[Row]:
    """Rows of a log, each with every column of its kind; what the trainer does not print is None."""
    from hpctrain.run.output.progress import printed  # most trainers write the file

    plan = KeptPlan.of(run.plan)
    return [completed(row, plan) for row in printed(run, plan)]


def completed(row: Row, plan: KeptPlan) -> Row:
    """A printed row with every column of its kind; MFU and HFU by the plan's peak of a GPU."""
    if any(name.startswith("eval_") for name in row):
        return {"time": None, **row}
    numbers = plan.train.numbers
    hardware = (numbers.hardware if numbers else None) or 1.0
    shares = utilisation(row.get("tflops_per_gpu"), plan.peak_tflops or 0.0, hardware)
    return {**dict.fromkeys(COLUMNS), **shares, **row}
