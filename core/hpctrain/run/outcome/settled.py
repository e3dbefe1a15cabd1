"""Runs that are over, in a line each: a list of a thousand runs need not open them all again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from hpctrain.errors import HpctrainError
from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.record import dump, read_lines
from hpctrain.run.outcome.spent import NOTES, job_spans, node_hours, running_jobs
from hpctrain.run.output.metrics import metrics_file
from hpctrain.run.steps.status import RunState
from hpctrain.run.system import files
from hpctrain.run.this_computer import state_folder


@frozen(kw_only=True)
class Outcome:
    """What a list says of a run."""

    state: State
    node_hours: float | None
    metrics: Mapping[str, Any]
    """The training row that was written last."""


@frozen
class Settled:
    """`settled.jsonl` in the state folder: append-only, and like the list of runs never the truth."""

    path: Path
    lines: Mapping[str, Mapping[str, Any]]
    """By the run's path, the newest of each."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settled:
        path = state_folder(environ) / "settled.jsonl"
        try:
            lines = read_lines(path)
        except HpctrainError:  # what cannot be read is asked for again
            lines = []
        return cls(path, {str(line.get("path")): line for line in lines})

    def outcome(self, run: RunDirectory) -> Outcome | None:
        """How it ended; None where it is not known to be over, or something happened to it since."""
        line = self.lines.get(str(run.path))
        if line is None or not _is_unchanged(line):
            return None
        try:
            state, hours, metrics = State(line["state"]), line["node_hours"], line["metrics"]
        except (KeyError, ValueError):
            return None
        if not (isinstance(metrics, dict) and (hours is None or isinstance(hours, (int, float)))):
            return None
        return Outcome(state=state, node_hours=hours, metrics=metrics)

    def note(self, outcomes: Mapping[Path, Outcome], states: Mapping[Path, RunState]) -> None:
        """Add those that are over by more than silence."""
        lines = [
            dump(
                {
                    "path": str(path),
                    "state": outcome.state.value,
                    "node_hours": outcome.node_hours,
                    "metrics": dict(outcome.metrics),
                    "changed": _changes(state),
                }
            )
            for path, outcome in outcomes.items()
            if (state := states.get(path)) is not None and _is_settled(state)
        ]
        if lines:
            with contextlib.suppress(HpctrainError):  # a full disk costs time at the next look, no more
                files.make_folder(self.path.parent)
                files.append_line(self.path, b"\n".join(lines))


def outcome_of(run: RunDirectory, state: RunState | None) -> Outcome:
    """As its directory says; `unknown` where this machine cannot: another cluster's run on a shared disk."""
    return Outcome(
        state=state.state if state else State.UNKNOWN,
        node_hours=node_hours(job_spans(run, running_jobs(state.steps if state else ()))),
        metrics=metrics_file(run).last,
    )


def _is_settled(state: RunState) -> bool:
    """Whether no step will do anything unless a person, or an administrator, starts it again."""
    return state.state.over and not any(
        step.ending or not (step.state.over or step.state is State.PLANNED) for step in state.steps
    )


def _changes(state: RunState) -> dict[str, int]:
    """When the files changed that a run cannot go on without changing."""
    names = ("record.jsonl", *(f"steps/{step.step}/{NOTES}" for step in state.steps if step.job))
    return {name: _changed(f"{state.directory}/{name}") for name in names}


def _is_unchanged(line: Mapping[str, Any]) -> bool:
    changes = line.get("changed")
    return isinstance(changes, dict) and all(
        _changed(f"{line['path']}/{name}") == when for name, when in changes.items()
    )


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  (a Path for each of thousands takes its time)
    except OSError:
        return 0
