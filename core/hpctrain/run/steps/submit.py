"""Hand a step to the scheduler exactly once, whatever is killed in between.

A tag that exists nowhere else is on disk before the scheduler is called, and the scheduler keeps it
in the job's name. So a job is never sought by luck: after a kill or an unclear answer its tag is
looked up, and only two empty answers, some time apart, allow another try with the same tag.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.errors import HpctrainError, NotReachable, Problem, SubmitError
from hpctrain.model.job import Job, JobState
from hpctrain.model.plan import Binding
from hpctrain.model.step import After
from hpctrain.model.words import Cmd, Join, Var, Word, words_in
from hpctrain.render import shell
from hpctrain.run.disk.record import Entry, Record
from hpctrain.run.system import files

_WITNESS = ".tag."
UNCLEAR = "submit-unclear"
"""The code of a SubmitError that says: the job may exist. Every other SubmitError is a refusal."""

Submit = Callable[[Job, str], str]
"""The hook `submit_job(job, tag)`, answering the job's id."""
Query = Callable[[tuple[str, ...], tuple[str, ...]], Iterable[JobState]]
"""The hook `query_jobs(ids, tags)`."""


@frozen(kw_only=True)
class Patience:
    """How long to wait between two look-ups, and how long for a scheduler that does not answer."""

    between: float = 30.0
    silent: float = 300.0
    sleep: Callable[[float], None] = time.sleep


@frozen(kw_only=True)
class Order:
    """A rendered step that shall become a job: `submit` is the scheduler's own command."""

    step: str
    directory: str
    submit: Cmd
    binding: Binding
    after: tuple[tuple[After, str], ...] = ()
    """What it waits for, each with the id of its job."""
    avoid: tuple[str, ...] = ()
    """Nodes that its job stays away from."""
    env: Mapping[str, str] = attrs.field(factory=dict)
    environ: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ))


def submit_step(
    order: Order, record: Record, submit: Submit, query: Query, patience: Patience | None = None
) -> str:
    """Submit a step that is not submitted yet and return its job's id.

    Events: `intent` (on disk before the scheduler is called), then `submitted` or `refused`.
    """
    tag = uuid.uuid4().hex
    record.append("intent", step=order.step, tag=tag, **({"avoid": list(order.avoid)} if order.avoid else {}))
    _witness(order, tag)
    return _handed_over(job_of(order, tag), tag, record, submit, query, patience or Patience())


def resume_submission(
    order: Order, record: Record, submit: Submit, query: Query, patience: Patience | None = None
) -> str | None:
    """The id of the step's last submission; one that was interrupted is finished first.

    None when the step was never submitted or the scheduler refused it.
    """
    if lost := _lost(order, record):
        record.append("intent", step=order.step, tag=lost)
    last = submission(record.read(), order.step)
    if last is None or last.refused:
        return None
    if last.job:
        return last.job
    patience = patience or Patience()
    job_id = _looked_up(order.step, last.tag, query, patience)
    if job_id is None:
        return _handed_over(job_of(order, last.tag), last.tag, record, submit, query, patience)
    record.append("submitted", step=order.step, tag=last.tag, job=job_id, adopted=True)
    return job_id


@frozen(kw_only=True)
class Submission:
    """The last submission of a step, as the record has it; `job` is empty while nobody answered."""

    tag: str
    job: str = ""
    refused: bool = False
    cancelled: bool = False


def submission(entries: Iterable[Entry], step: str) -> Submission | None:
    """The last submission of `step`, or None."""
    return next(reversed(submissions(entries, step)), None)


def submissions(entries: Iterable[Entry], step: str) -> tuple[Submission, ...]:
    """Every submission of `step`, the last one at the end; an event without a tag is about the last."""
    by_tag: dict[str, Submission] = {}
    latest = ""
    for entry in entries:
        if entry.get("step") != step:
            continue
        event, tag = entry.get("event"), str(entry.get("tag", "")) or latest
        if event == "intent":
            latest = tag
            by_tag[tag] = Submission(tag=tag)
        elif tag not in by_tag:
            continue
        elif event == "submitted":
            by_tag[tag] = attrs.evolve(by_tag[tag], job=str(entry.get("job", "")))
        elif event == "refused":
            by_tag[tag] = attrs.evolve(by_tag[tag], refused=True)
        elif event == "cancelled":
            by_tag[tag] = attrs.evolve(by_tag[tag], cancelled=True)
    return tuple(by_tag.values())


def _witness(order: Order, tag: str) -> None:
    """A second trace of a tag, for a record that is lost or cut off: by a full disk, or a crash."""
    folder = Path(order.directory, "steps", order.step)
    files.make_folder(folder)
    (folder / f"{_WITNESS}{tag}").touch(mode=0o600)


def _lost(order: Order, record: Record) -> str:
    """The tag of the newest submission that the record does not have: its job may be in the queue."""
    folder = Path(order.directory, "steps", order.step)
    witnesses = sorted(folder.glob(f"{_WITNESS}*"), key=lambda path: path.stat().st_mtime_ns)
    tag = witnesses[-1].name.removeprefix(_WITNESS) if witnesses else ""
    intents = (entry for entry in record.read() if entry.get("event") == "intent")
    recorded = {str(entry.get("tag")) for entry in intents if entry.get("step") == order.step}
    return tag if tag not in recorded else ""


def job_of(order: Order, tag: str) -> Job:
    """The order with its tag: an argv that needs no shell.

    A word that holds HPC_AFTER is left out when there is nothing to wait for, one that holds HPC_AVOID when
    there is no node to stay away from.
    """
    after = ",".join(f"after{edge.when.value}:{ident}" for edge, ident in order.after)
    lists = {"HPC_AFTER": after, "HPC_AVOID": ",".join(order.avoid)}
    values = {**order.environ, **lists, "HPC_TAG": tag, "HPC_RUN": order.directory}
    nothing = {Var(name) for name, value in lists.items() if not value}
    words = [w for w in order.submit.argv if nothing.isdisjoint(words_in(w))]
    return Job(
        step=order.step,
        directory=order.directory,
        name=order.step,
        argv=tuple(filled(word, values, order.binding) for word in words),
        after=order.after,
        avoid=order.avoid,
        env=order.env,
    )


def filled(word: Word, values: Mapping[str, str], binding: Binding) -> str:
    """The text of a word whose variables have these values."""
    word = shell.opened(word, binding)
    if isinstance(word, Var):
        if word.name not in values:
            raise SubmitError.of("variable", f"${word.name} is not set here", where=word.name)
        return values[word.name]
    if isinstance(word, Join):
        return "".join(filled(part, values, binding) for part in word.parts)
    return shell.plain(word, binding)


def _handed_over(job: Job, tag: str, record: Record, submit: Submit, query: Query, patience: Patience) -> str:
    for _ in range(2):
        try:
            job_id: str | None = submit(job, tag)
        except SubmitError as error:
            if not is_unclear(error):
                record.append("refused", step=job.step, tag=tag, why=str(error))
                raise
            job_id = _looked_up(job.step, tag, query, patience, error.problems)
        if job_id:
            record.append("submitted", step=job.step, tag=tag, job=job_id)
            return job_id
    raise _unknown(job.step, tag, ("the scheduler was asked twice and returned no id",))


def _looked_up(
    step: str, tag: str, query: Query, patience: Patience, problems: tuple[Problem, ...] = ()
) -> str | None:
    """The id of the job with `tag`; None after two answers without it. Silence proves nothing."""
    empty, waited = 0, 0.0
    while True:
        try:
            job_id = next((job.id for job in query((), (tag,)) if job.tag == tag), None)
        except NotReachable as error:
            if waited >= patience.silent:
                notes = [note for p in (*problems, *error.problems) for note in (p.message, *p.notes)]
                raise _unknown(step, tag, notes) from error
        else:
            empty += 1
            if job_id or empty == 2:
                return job_id
        patience.sleep(patience.between)
        waited += patience.between


def is_unclear(error: HpctrainError) -> bool:
    return any(problem.code == UNCLEAR for problem in error.problems)


def _unknown(step: str, tag: str, notes: Iterable[str]) -> SubmitError:
    return SubmitError(
        Problem(
            code="submit-unknown",
            message=f"it is not known yet whether the job of step {step} exists",
            where=step,
            notes=(*dict.fromkeys(notes), f"its tag: {tag}"),
            hint="hpctrain continue      (looks for the tag and submits only what is not there)",
        )
    )
