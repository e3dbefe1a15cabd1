"""What one line says of a run that lives: its state, how far the training is, and when it will be done."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from hpctrain.model.job import State
from hpctrain.run.steps.status import RunState, StepState

Row = Mapping[str, Any]


@frozen(kw_only=True)
class Trained:
    """How far the training is, by the newest of its rows."""

    step: int | None = None
    steps: int | None = None
    """In all, where the plan or the trainer says so."""
    loss: float | None = None
    eval_loss: float | None = None
    eval_step: int | None = None
    tokens_per_s: float | None = None
    mfu: float | None = None
    at: float | None = None
    """When the newest row was written."""
    seconds_per_step: float | None = None
    """At the pace of the last rows."""
    seconds_per_row: float | None = None
    """As often as rows were written lately."""

    @property
    def ends_at(self) -> float | None:
        """When the last step will be done at this pace."""
        if self.step is None or not self.steps or self.at is None or self.seconds_per_step is None:
            return None
        return self.at + max(0, self.steps - self.step) * self.seconds_per_step


@frozen(kw_only=True)
class Vitals:
    """A run at one moment. Its clocks are moments, so that they tick without another question."""

    title: str
    cluster: str
    state: State
    step: StepState | None = None
    """The step that decides the state of the run."""
    seen_at: float | None = None
    """When the scheduler said so; None where it has not, or knows none of the jobs."""
    silent: str = ""
    """Why it has said nothing since."""
    trained: Trained = Trained()

    @property
    def nodes(self) -> int:
        """How many nodes its job holds."""
        job = self.step.scheduler if self.step else None
        return len(job.nodes) if job else 0

    @property
    def began_at(self) -> float | None:
        """When its job began to run."""
        job = self.step.scheduler if self.step else None
        if job is None or job.state is not State.RUNNING or self.seen_at is None:
            return None
        return self.seen_at - job.elapsed_s if job.elapsed_s is not None else None

    @property
    def limit_s(self) -> int | None:
        """How long its job may run."""
        job = self.step.scheduler if self.step else None
        return job.limit_s if job else None

    @property
    def starts_at(self) -> float | None:
        """When the scheduler expects its job to begin."""
        job = self.step.scheduler if self.step else None
        return moment(job.start) if job is not None and job.state is State.QUEUED else None

    @property
    def position(self) -> int | None:
        """The place of its job among those that wait, from 1."""
        job = self.step.scheduler if self.step else None
        return job.position if job is not None and job.state is State.QUEUED else None

    @property
    def attempt(self) -> tuple[int, int | None] | None:
        """Which attempt it is, and of how many; None for the only one."""
        if self.step is None:
            return None
        if self.step.chain is not None:
            return max(1, self.step.chain.attempts), self.step.chain.planned
        return (self.step.attempt + 1, None) if self.step.attempt else None


def vitals(title: str, cluster: str, run: RunState, trained: Trained, asked_at: float) -> Vitals:
    """The run as its jobs, its scheduler and its trainer describe it; its state is that of `asked_at`."""
    answer = run.answer
    return Vitals(
        title=title,
        cluster=cluster,
        state=run.state,
        step=deciding(run),
        seen_at=asked_at - answer.age_s if answer.jobs else None,
        silent=answer.silent[0].message if answer.silent else "",
        trained=trained,
    )


def deciding(run: RunState) -> StepState | None:
    """The step that the state of the run is about: a job of that state, else the last job, else any step."""
    jobs = [step for step in run.steps if step.job]
    of_state = [step for step in jobs if step.state is run.state]
    return next(iter((*of_state, *reversed(jobs), *(s for s in run.steps if s.state is run.state))), None)


def pace(rows: Sequence[Row], tokens_per_step: int | None = None) -> float | None:
    """Seconds of a step by the last rows, whose steps rise; by their tokens where they have no times.

    The median of all intervals: one of them may hold an evaluation, or the wait for the next job.
    """
    timed = [row for row in rows if isinstance(row.get("time"), (int, float))]
    paces = [
        float((late["time"] - early["time"]) / (late["step"] - early["step"]))
        for early, late in itertools.pairwise(timed)
    ]
    if paces:
        return max(0.0, statistics.median(paces))
    rate = rows[-1].get("tokens_per_s") if rows else None
    return tokens_per_step / rate if tokens_per_step and rate else None


def moment(iso: str) -> float | None:
    """A time as schedulers write it, in the zone of the login node where they name none."""
    try:
        return datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
