"""Hand over the jobs of a chain: each behind the end of the one before, each exactly once."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from hpctrain.errors import SubmitError
from hpctrain.model.job import ChainState
from hpctrain.run.disk.record import Record
from hpctrain.run.steps.chained import lacking
from hpctrain.run.steps.submit import (
    Order,
    Patience,
    Query,
    Submit,
    is_unclear,
    resume_submission,
    submission,
    submissions,
    submit_step,
)
from hpctrain_job.attempts import Step
from hpctrain_job.chain.successors import LOCK, TURN_SECONDS
from hpctrain_job.files.shared import one_at_a_time


@frozen
class Scheduler:
    """Who takes the jobs, and the record of what was handed over."""

    record: Record
    submit: Submit
    query: Query
    patience: Patience | None = None


@frozen(kw_only=True)
class Links:
    """The jobs of a chain that are not over."""

    in_queue: tuple[str, ...]
    """In their order."""
    new: tuple[str, ...] = ()
    """Those of them that were submitted just now."""

    @property
    def first(self) -> str:
        """The job that runs, or will run next."""
        return self.in_queue[0] if self.in_queue else ""

    @property
    def text(self) -> str:
        """`17, and 3 behind it`."""
        behind = len(self.in_queue) - 1
        return f"{self.first}, and {behind} behind it" if behind > 0 else self.first


def hand_over(
    step: Step,
    order: Callable[[str], Order],
    scheduler: Scheduler,
    state: ChainState | None,
    *,
    is_over: bool,
) -> Links:
    """Finish a submission that was interrupted, then submit what the chain lacks; `state` is what was seen
    before, None of a new run. One at a time: what another command hands over meanwhile is left to it.

    A link that the scheduler refuses is no failure of the run as long as another is in the queue: a limit on
    jobs, say. It is left to a later `continue`.
    """
    with one_at_a_time(step.folder / LOCK, TURN_SECONDS):
        submitted = submissions(scheduler.record.read(), step.name)
        in_queue = state.jobs if state else ()
        if len(submitted) != (state.submitted if state else 0):
            return Links(in_queue=in_queue or tuple(s.job for s in submitted[-1:]))
        return _handed_over(step, order, scheduler, in_queue, is_over=is_over)


def _handed_over(
    step: Step,
    order: Callable[[str], Order],
    scheduler: Scheduler,
    in_queue: tuple[str, ...],
    *,
    is_over: bool,
) -> Links:
    services = (scheduler.record, scheduler.submit, scheduler.query, scheduler.patience)
    last = submission(scheduler.record.read(), step.name)
    if not is_over:
        job = resume_submission(order(in_queue[-1] if in_queue else ""), *services)
        was_unfinished = last is None or not (last.job or last.refused)
        if job and was_unfinished and job not in in_queue:
            in_queue = (*in_queue, job)
        elif job and not in_queue:
            return Links(in_queue=(job,))  # nobody knows what became of it: another would be too many
    count, behind = lacking(step, in_queue)
    if step.ended or (is_over and not in_queue):
        step.reopen()
    new: list[str] = []
    for _ in range(count):
        job = _another(order(new[-1] if new else behind), services, is_needed=not (in_queue or new))
        if job is None:
            break
        new.append(job)
    return Links(in_queue=(*in_queue, *new), new=tuple(new))


def _another(
    order: Order, services: tuple[Record, Submit, Query, Patience | None], *, is_needed: bool
) -> str | None:
    """The id of one more job; None where the scheduler refuses it and the chain can do without."""
    try:
        return submit_step(order, *services)
    except SubmitError as error:
        if is_needed or is_unclear(error):
            raise
        return None
