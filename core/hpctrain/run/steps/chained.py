"""The state of a step that several jobs do one after the other, and the jobs that its chain lacks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hpctrain.errors import IntegrityError
from hpctrain.model.job import ChainState, JobState, State
from hpctrain.run.steps.submit import Submission
from hpctrain_job.attempts import TERMS, Step
from hpctrain_job.chain import decision
from hpctrain_job.chain.decision import Cause

STATES = {
    Cause.FINISHED.value: State.DONE,
    Cause.CANCELLED.value: State.CANCELLED,
    decision.USED_UP: State.WAITING,
}
"""What the end of a chain makes of its step; any other reason is a failure, or a stop file."""


def record_of(step: Step) -> decision.Record:
    """What the attempts wrote; IntegrityError where nobody can read what the chain was asked for."""
    try:
        return step.record()
    except (OSError, ValueError) as error:
        message = f"{step.folder / TERMS} cannot be read: {error}"
        raise IntegrityError.of("chain", message, hint="hpctrain submit --resume") from None


def chain_state(
    directory: Path, step: str, planned: int, submitted: int, jobs: tuple[str, ...]
) -> ChainState:
    """What the attempts wrote, with the jobs that were handed over and those that the scheduler has."""
    record = record_of(Step(directory, step))
    last = record.attempts[-1] if record.attempts else None
    return ChainState(
        attempts=sum(not attempt.is_inside for attempt in record.attempts),
        restarts=sum(attempt.is_inside for attempt in record.attempts),
        planned=planned,
        jobs=jobs,
        training=last.job if last is not None and last.is_open else "",
        submitted=submitted,
        left_s=max(0.0, decision.seconds_left(record)),
        ended=record.ended,
        avoided=record.avoided,
    )


def attempts_of(directory: Path, step: str) -> tuple[decision.Attempt, ...]:
    """Every start of the training, oldest first."""
    return record_of(Step(directory, step)).attempts


def unsettled(directory: Path, step: str, submitted: Iterable[Submission]) -> tuple[Submission, ...]:
    """The jobs that the scheduler must be asked about: whose attempt nobody has closed, and the last,
    which may be queued again."""
    attempts = record_of(Step(directory, step)).attempts
    over = {attempt.job for attempt in attempts[:-1] if not attempt.is_open} - {a.job for a in attempts[-1:]}
    return tuple(s for s in submitted if not s.refused and s.job not in over)


def live(
    submitted: Iterable[Submission], jobs: Iterable[JobState]
) -> tuple[tuple[Submission, JobState], ...]:
    """The submissions whose job is not over, in the order of submission."""
    pairs = []
    for submission in submitted:
        for job in jobs:
            is_its = (
                job.tag == submission.tag if job.tag else bool(submission.job) and job.id == submission.job
            )
            if is_its and not job.state.over:
                pairs.append((submission, job))
                break
    return tuple(pairs)


def end_state(why: str) -> State:
    """The state of a step whose chain has ended."""
    if why.startswith(decision.STOPPED):
        return State.CANCELLED
    return STATES.get(why, State.FAILED)


def lacking(step: Step, in_queue: tuple[str, ...]) -> tuple[int, str]:
    """How many jobs the chain lacks when a person wants it to go on, and behind which the first comes."""
    record = record_of(step)
    last = record.attempts[-1] if record.attempts else None
    if last is not None and last.is_open and last.job not in in_queue:
        record = decision.applied(decision.Ended(last.job, last.began, Cause.LOST, step.newest()), record)
        last = None
    running = last.job if last is not None and last.is_open else ""
    record = replace(record, waiting=tuple(job for job in in_queue if job != running))
    for action in decision.decide(decision.Continued(time.time()), record):
        if isinstance(action, decision.Submit):
            return action.count, action.after
    return 0, ""
