"""What a run cost: when its jobs began and ended, on how many nodes, as they noted it themselves."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.record import Entry, read_lines
from hpctrain.run.steps.status import StepState

NOTES = "jobs.jsonl"
"""Written by job.sh into the folder of the step: a line when a job begins, and one when it ends."""


@frozen(kw_only=True)
class JobSpan:
    """One start of one job. Times in seconds since 1970."""

    step: str
    job: str
    nodes: int
    began: float
    ended: float
    """Now, while it runs; of a job that left no word, when its logs were last written."""
    code: int | None = None
    """The exit code; None while it runs, and where it left no word."""
    is_running: bool = False

    @property
    def seconds(self) -> float:
        """How long it held its nodes."""
        return max(0.0, self.ended - self.began)


def running_jobs(steps: Iterable[StepState]) -> frozenset[str]:
    """The jobs that hold nodes now."""
    return frozenset(step.job for step in steps if step.job and step.state is State.RUNNING)


def job_spans(run: RunDirectory, running: Collection[str] = ()) -> list[JobSpan]:
    """Every start of every job of the run, oldest first; `running` are the jobs that hold nodes now."""
    spans = [
        span for notes in run.path.glob(f"steps/*/{NOTES}") for span in _spans_of_step(run, notes, running)
    ]
    return sorted(spans, key=lambda span: span.began)


def node_hours(spans: Iterable[JobSpan]) -> float | None:
    """What they cost together; None where no job noted anything, as before this was written down."""
    costs = [span.nodes * span.seconds / 3600 for span in spans]
    return sum(costs) if costs else None


def moment(stamp: object) -> float | None:
    """Seconds since 1970 of an RFC 3339 text; None for what is none."""
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _spans_of_step(run: RunDirectory, notes: Path, running: Collection[str]) -> list[JobSpan]:
    step = notes.parent.name
    spans: list[JobSpan] = []
    is_open = False
    for note in read_lines(notes):
        at = moment(note.get("at"))
        if at is None:
            continue
        if note.get("event") == "began":
            if is_open:
                spans[-1] = _without_word(run, spans[-1], at)
            spans.append(_begun(step, note, at))
            is_open = True
        elif is_open and spans[-1].job == str(note.get("job")):
            code = note.get("code")
            spans[-1] = attrs.evolve(spans[-1], ended=at, code=code if isinstance(code, int) else None)
            is_open = False
    if is_open:
        last = spans[-1]
        spans[-1] = (
            attrs.evolve(last, ended=time.time(), is_running=True)
            if last.job in running
            else _without_word(run, last, time.time())
        )
    return spans


def _begun(step: str, note: Entry, at: float) -> JobSpan:
    nodes = note.get("nodes")
    count = nodes if isinstance(nodes, int) and 0 < nodes < 1 << 20 else 1
    return JobSpan(step=step, job=str(note.get("job", "")), nodes=count, began=at, ended=at)


def _without_word(run: RunDirectory, span: JobSpan, latest: float) -> JobSpan:
    """It was killed with all that it ran: it ended when it last wrote, `latest` when the next began."""
    signs = (run.log(span.step), run.log(span.step, 0), run.metrics)
    times = [path.stat().st_mtime for path in signs if path.exists()]
    return attrs.evolve(span, ended=max(span.began, min(latest, max(times, default=span.began))))
