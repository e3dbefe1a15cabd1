"""One run at a glance: its state, what it was asked, what it cost, what it reached and saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define

from hpctrain.errors import HpctrainError
from hpctrain.model.job import State
from hpctrain.run.directory import RunDirectory
from hpctrain.run.live import LiveRun
from hpctrain.run.metrics import Metrics, metrics_of
from hpctrain.run.request import Request
from hpctrain.run.saved import Saved, saved
from hpctrain.run.spent import JobSpan, job_spans, node_hours, running_jobs
from hpctrain.run.status import StepState


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
    def state(self) -> State:
        """In one word."""
        return self.status[0]

    @cached_property
    def request(self) -> Request:
        """What it was asked."""
        return Request.of(self.run)

    @cached_property
    def metrics(self) -> Metrics:
        """What the training wrote or printed."""
        return metrics_of(self.run)

    @cached_property
    def training(self) -> Sequence[Mapping[str, Any]]:
        """The rows with a loss, one for each step."""
        return self.metrics.training

    @cached_property
    def evaluations(self) -> Sequence[Mapping[str, Any]]:
        """The rows of evaluations, one for each step."""
        return self.metrics.evaluations

    @cached_property
    def spans(self) -> list[JobSpan]:
        """When its jobs held nodes."""
        return job_spans(self.run, running_jobs(self.status[1]))

    @property
    def node_hours(self) -> float | None:
        """What it cost."""
        return node_hours(self.spans)

    @cached_property
    def checkpoints(self) -> list[Saved]:
        """What it saved; none where this machine does not know the place."""
        return saved(self.live) if self.live else []

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
