"""One run at a glance: its state, what it was asked, what it cost, what it reached and saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define

from hpctrain.errors import HpctrainError
from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.kept_plan import KeptPlan
from hpctrain.run.disk.request import Request
from hpctrain.run.live import LiveRun
from hpctrain.run.outcome.checkpoints import SavedCheckpoint, saved
from hpctrain.run.outcome.goodput import Attempt, attempts
from hpctrain.run.outcome.spent import JobSpan, job_spans, node_hours, running_jobs
from hpctrain.run.output.metrics import Metrics, evaluation_rows, metrics_of, training_rows
from hpctrain.run.steps.status import StepState


@define(slots=False)
class Summary:
    """A run whose parts are read when they are asked for, and once."""

    run: RunDirectory
    environ: Mapping[str, str]

    @cached_property
    def live(self) -> LiveRun | None:
        """The run with its scheduler; None where this machine has none of that kind."""
        try:
            return LiveRun.open(self.run, self.environ)
        except HpctrainError:
            return None

    @cached_property
    def status(self) -> tuple[State, tuple[StepState, ...]]:
        """Its state in one word, and its steps; `unknown` where this machine cannot say."""
        try:
            status = self.live.status() if self.live else None
        except HpctrainError:
            status = None
        return (status.state, status.steps) if status else (State.UNKNOWN, ())

    @property
    def steps(self) -> tuple[StepState, ...]:
        """Its steps; none where this machine cannot say."""
        return self.status[1]

    @property
    def state(self) -> State:
        """In one word."""
        return self.status[0]

    @cached_property
    def request(self) -> Request:
        """What it was asked."""
        return Request.of(self.run)

    @cached_property
    def planned_steps(self) -> int | None:
        """How many steps of training the plan counted; None where it could not."""
        return KeptPlan.of(self.run.plan).steps

    @cached_property
    def metrics(self) -> Metrics:
        """What the training wrote or printed."""
        return metrics_of(self.run)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each step and kind."""
        return self.metrics.rows

    @cached_property
    def training(self) -> Sequence[Mapping[str, Any]]:
        """The rows with a loss, one for each step."""
        return training_rows(self.rows)

    @cached_property
    def evaluations(self) -> Sequence[Mapping[str, Any]]:
        """The rows of evaluations, one for each step."""
        return evaluation_rows(self.rows)

    @cached_property
    def spans(self) -> list[JobSpan]:
        """When its jobs held nodes."""
        return job_spans(self.run, running_jobs(self.steps))

    @cached_property
    def attempts(self) -> list[Attempt]:
        """The starts of its training, and where their time went."""
        return attempts(self.run, self.spans, self.metrics.written)

    @property
    def node_hours(self) -> float | None:
        """What it cost."""
        return node_hours(self.spans)

    @cached_property
    def checkpoints(self) -> tuple[SavedCheckpoint, ...]:
        """What it saved; none where this machine does not know the place."""
        model = saved(self.live) if self.live else None
        return model.checkpoints if model else ()

    @property
    def cluster(self) -> str:
        """Where it runs."""
        return self.live.graph.cluster if self.live else "?"

    def median(self, column: str) -> float | None:
        """The middle value of a column: what the training usually did, whatever its start was like."""
        values = sorted(
            value
            for row in self.training
            if isinstance(value := row.get(column), (int, float)) and math.isfinite(value)
        )
        return values[len(values) // 2] if values else None
