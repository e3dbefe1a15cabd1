"""Where the time of a training's attempts went: start-up, steps that stayed, steps done again, the end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from hpctrain.plan.chain import TRAIN
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.outcome.spent import JobSpan
from hpctrain_job.attempts import Step
from hpctrain_job.exit_codes import HUNG, SAVED, TOO_FEW_NODES
from hpctrain_job.metrics import lost

Row = Mapping[str, Any]
Marked: TypeAlias = "tuple[Row, bool]"
"""A row, and whether it was lost with its attempt."""
_SLACK = 2.0
"""Seconds by which clocks of nodes and the rounding of notes may differ."""


@frozen(kw_only=True)
class Attempt:
    """One start of the training; seconds of its parts are None where its rows have no time."""

    span: JobSpan
    ended_by: str
    """Why it ended, in words."""
    first_step: int | None = None
    last_step: int | None = None
    """Of the rows that it wrote."""
    startup_s: float | None = None
    """Until its first row."""
    kept_s: float | None = None
    """From its first row to the last that no later attempt did again."""
    repeated_s: float | None = None
    """Of rows that a later attempt did again, from its checkpoint on."""
    rest_s: float | None = None
    """After its last row: saving, ending, or hanging."""


def attempts(run: RunDirectory, spans: Iterable[JobSpan], written: Iterable[Row]) -> list[Attempt]:
    """The attempts of the training, oldest first; `written` are all rows in the order of writing."""
    trained = [span for span in spans if span.step == TRAIN]
    causes: dict[str, list[str]] = {}
    for event in Step(run.path, TRAIN).events():
        if event.get("event") == "ended":
            causes.setdefault(str(event.get("job")), []).append(str(event.get("cause")))
    rows = [row for row in written if row.get("loss") is not None and _is_time(row.get("time"))]
    marked = list(zip(rows, lost(rows), strict=True))
    return [
        _attempt(span, rows_of_attempt, _ended_by(span, causes))
        for span, rows_of_attempt in zip(trained, _rows_of(trained, marked), strict=True)
    ]


def goodput(attempts: Sequence[Attempt]) -> float | None:
    """The share of all their time in which steps were done that stayed; None where that is not known."""
    total = sum(attempt.span.seconds for attempt in attempts)
    lasting = [attempt.kept_s for attempt in attempts if attempt.kept_s is not None]
    return min(1.0, sum(lasting) / total) if lasting and total > 0 else None


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rows_of(spans: Sequence[JobSpan], rows: Iterable[Marked]) -> list[list[Marked]]:
    """Each attempt's rows: those from its beginning to that of the next."""
    rows_by_attempt: list[list[Marked]] = [[] for _ in spans]
    starts = [span.began - _SLACK for span in spans]
    for row, is_lost in rows:
        at = bisect_right(starts, row["time"])
        if at:
            rows_by_attempt[at - 1].append((row, is_lost))
    return rows_by_attempt


def _attempt(span: JobSpan, rows: Sequence[Marked], ended_by: str) -> Attempt:
    if not rows:
        return Attempt(span=span, ended_by=ended_by)
    first, last = rows[0][0], rows[-1][0]
    lasting = [row for row, is_lost in rows if not is_lost]
    until = lasting[-1]["time"] if lasting else first["time"]
    return Attempt(
        span=span,
        ended_by=ended_by,
        first_step=first["step"],
        last_step=last["step"],
        startup_s=max(0.0, first["time"] - span.began),
        kept_s=max(0.0, until - first["time"]),
        repeated_s=max(0.0, last["time"] - until),
        rest_s=max(0.0, span.ended - last["time"]),
    )


def _ended_by(span: JobSpan, causes: Mapping[str, list[str]]) -> str:
    """The next of the job's causes: one that begins again under its id has several."""
    if span.is_running:
        return "it runs"
    if causes.get(span.job):
        return causes[span.job].pop(0)
    if span.code is None:
        return "left no word"
    words = {0: "finished", SAVED: "saved", HUNG: "hung", TOO_FEW_NODES: "unfit nodes"}
    return words.get(span.code, f"exit code {span.code}")
