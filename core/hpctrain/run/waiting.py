"""Wait for a run's jobs, asking the scheduler no more often than the site wants."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hpctrain.errors import JobFailed, TimedOut
from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.status import RunState, StepState

TICK_SECONDS = 1.0
STOPPED = (State.DONE, State.WAITING)
"""States of a step in which nothing more happens by itself."""


def wait_until_over(
    directory: RunDirectory,
    status: Callable[[], RunState],
    *,
    timeout: float,
    interval: float,
    on_tick: Callable[[RunState], object] | None,
) -> RunState:
    """The state once a step ended badly, or each is over or waits for `continue`; else TimedOut.

    Between two questions `on_tick` hears the newest state about once a second.
    """
    end = time.monotonic() + timeout
    while True:
        state = status()
        if is_over(state):
            return state
        left = end - time.monotonic()
        if left <= 0:
            raise _too_long(directory, state, timeout)
        next_question = time.monotonic() + min(interval, left)
        while (pause := next_question - time.monotonic()) > 0:
            if on_tick is not None:
                on_tick(state)
            time.sleep(min(TICK_SECONDS, pause))


def is_over(state: RunState) -> bool:
    """Whether nothing more happens by itself: a step ended badly, or each is done or waits for `continue`."""
    return ended_badly(state) is not None or all(step.state in STOPPED for step in state.steps)


def ended_badly(state: RunState) -> StepState | None:
    """The first step that failed or was cancelled."""
    return next((step for step in state.steps if step.state in (State.FAILED, State.CANCELLED)), None)


def failure(directory: RunDirectory, step: StepState, environ: Mapping[str, str]) -> JobFailed:
    """The error of a run whose step ended badly, with the surest cause that `diagnose` sees."""
    return JobFailed.of(
        "job-failed",
        f"{directory.title}: step {step.step} {step.state.value}",
        notes=(*_causes(directory, step, environ), f"log: {directory.log(step.step)}"),
        hint=f"hpctrain diagnose {directory.title}",
    )


def _causes(directory: RunDirectory, step: StepState, environ: Mapping[str, str]) -> list[str]:
    """The surest cause with its fix; where no rule knows any, the first error."""
    from hpctrain.run.diagnosis import diagnose  # a run that succeeds needs none

    diagnosis = diagnose.diagnose(directory, step, diagnose.rules_of(directory, environ))
    if not diagnosis.causes:
        first = diagnosis.first
        return ["cause: unknown", f"first error: {first.text.strip()}"] if first else []
    cause = diagnosis.causes[0]
    return [
        f"cause: {cause.rule.sure}: {cause.rule.cause}",
        f"evidence: {cause.evidence.text.strip()}",
        *([f"fix: {cause.rule.fix}"] if cause.rule.fix else []),
    ]


def _too_long(directory: RunDirectory, state: RunState, timeout: float) -> TimedOut:
    unfinished = ", ".join(f"{s.step} {s.state.value}" for s in state.steps if s.state not in STOPPED)
    return TimedOut.of(
        "timeout",
        f"{directory.title} is not over after {timeout:g} s: {unfinished}",
        hint=f"hpctrain status {directory.title}      (it goes on; wait again)",
    )
