"""What happens next in a training of several jobs: one pure function of an event and the record before it.

A chain is a row of jobs (links) that do the same step one after the other; each that trains is an attempt.
Nobody watches it: whoever is alive asks `decide` and carries the answer out, which is the attempt that begins
or ends, and `hpctrain continue`. The same function drives the simulator of the tests.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace


class Cause(enum.Enum):
    """Why an attempt ended."""

    FINISHED = "finished"
    """The training reached its goal."""
    SAVED = "saved"
    """It saved because its time was nearly over."""
    LIMIT = "time limit"
    """The time limit came before it had saved."""
    TAKEN = "preempted"
    """The scheduler took its nodes and starts it again, or gives the next job a turn."""
    NODE = "node fault"
    """A node failed under it."""
    LOST = "lost"
    """It left no word: its first node died, or everything of it was killed at once."""
    HUNG = "hung"
    """Nothing moved any more, and its watch ended it."""
    FAILED = "failed"
    """Its program failed; the reason is not known to be for ever."""
    SETTING = "wrong setting"
    """A setting or the data is wrong, and will be in the next attempt."""
    NETWORK = "refused network"
    """The nodes did not talk over the fast network, and would not in the next attempt."""
    DIVERGED = "diverged"
    """The loss stopped being a number."""
    FULL = "full disk"
    """Its program failed, and there is no room for another checkpoint."""
    DAMAGED = "damaged checkpoints"
    """None of its checkpoints is what was written, and starting anew would lose them."""
    CANCELLED = "cancelled"
    """Somebody ended it."""


FOR_EVER = (Cause.SETTING, Cause.NETWORK, Cause.DIVERGED, Cause.DAMAGED, Cause.CANCELLED)
"""Causes that another attempt would meet again, or undo."""
FAULTS = (Cause.NODE, Cause.LOST, Cause.FAILED)
"""Causes that come at any time, and cost the work since the last checkpoint."""
FULLS = 3
"""So many attempts in a row without room for a checkpoint end the chain: others may free some meanwhile."""
STOPPED = "stopped: "
USED_UP = "its total time is used up"
WHOLE = (Cause.SAVED, Cause.LIMIT)
"""Causes of an attempt that had all of its time."""


@dataclass(frozen=True)
class Terms:
    """What the run asks for. Times in seconds."""

    total: int
    """How long attempts may train together; the last one is a whole one."""
    time: int
    """The time limit of one attempt."""
    links: int
    """The most jobs of the chain in the queue at once, with the one that runs. One of them is a spare behind
    the last attempt: if that one is lost without a word, somebody is there to go on."""
    failures: int = 5
    """So many attempts in a row whose own program failed soon end the chain, progress or not."""
    soon: float = math.inf
    """What counts as soon: on many nodes faults come so often that five in a row say nothing."""
    idle: int = 3
    """So many attempts in a row without a newer checkpoint end it: more than chance explains."""
    requeue: bool = False
    """Whether the job of an attempt is queued again for the next one, and no other is handed over."""
    avoid: int = 8
    """The most nodes that are avoided: with too many, a job would wait for ever."""
    nodes: int = 0
    """How many nodes of an allocation with spare ones train; 0: it has none, and nobody guards them."""
    notice: int = 120
    """How long before the end of a job it is told to save: nothing is begun again so near to it."""


@dataclass(frozen=True)
class Attempt:
    """One start of the training. Times in seconds since 1970; `step` is that of the newest whole checkpoint,
    None where the trainer's checkpoints are not known."""

    job: str
    began: float
    first_step: int | None = None
    ended: float | None = None
    cause: Cause | None = None
    last_step: int | None = None
    nodes: tuple[str, ...] = ()
    lost_nodes: tuple[str, ...] = ()
    """Those of them that failed."""
    is_inside: bool = False
    """Whether it went on in the allocation of the attempt before it."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has said yet how it ended."""
        return self.cause is None

    @property
    def is_fault(self) -> bool:
        """Whether it was cut off by what may happen at any time."""
        return self.cause in FAULTS

    @property
    def has_progressed(self) -> bool:
        """Whether it left a newer checkpoint, as far as anybody can know."""
        if self.last_step is None:
            return True
        return self.last_step > (self.first_step or 0)


@dataclass(frozen=True)
class Record:
    """All that is known of a chain."""

    terms: Terms
    attempts: tuple[Attempt, ...] = ()
    """Oldest first."""
    waiting: tuple[str, ...] = ()
    """Jobs of the chain that have not begun, in their order."""
    judged_from: int = 0
    """The first attempt that counts: `hpctrain continue` begins the counts anew."""
    ended: str = ""
    """Why the chain ended; empty while it goes on."""
    stop_file: str = ""
    """A file by which somebody asked for the end, where there is one."""
    bad_nodes: tuple[str, ...] = ()
    """Nodes that failed under other runs, or that somebody named, the newest first."""

    @property
    def avoided(self) -> tuple[str, ...]:
        """Nodes on which no later attempt shall run: those that failed most often, then the newest, then
        what is known from other runs."""
        faults = [node for attempt in reversed(self.attempts) for node in attempt.lost_nodes]
        by_count = sorted(dict.fromkeys(faults), key=faults.count, reverse=True)
        return tuple(dict.fromkeys((*by_count, *self.bad_nodes)))[: self.terms.avoid]


@dataclass(frozen=True)
class Began:
    """A job of the chain was started."""

    job: str
    at: float
    step: int | None = None
    nodes: tuple[str, ...] = ()
    is_inside: bool = False
    """Whether the allocation is that of the attempt before it."""


@dataclass(frozen=True)
class Ended:
    """The attempt of a job is over; `lost_nodes` are those that are to blame. `standing` are the nodes of its
    allocation that still answer, for `seconds_left`, where somebody guards them."""

    job: str
    at: float
    cause: Cause
    step: int | None = None
    lost_nodes: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    seconds_left: float = 0.0


@dataclass(frozen=True)
class Continued:
    """A person wants the chain to go on, whatever ended it."""

    at: float


Event = Began | Ended | Continued


@dataclass(frozen=True)
class Train:
    """This job trains."""


@dataclass(frozen=True)
class Leave:
    """This job has nothing to do and ends well."""

    why: str


@dataclass(frozen=True)
class EndChain:
    """No further attempt: the reason is written, and the waiting jobs are taken out of the queue."""

    why: str
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Avoid:
    """Waiting jobs stay away from these nodes."""

    nodes: tuple[str, ...]
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submit:
    """So many more jobs, each behind the one before; the first behind `after`, empty: behind none."""

    count: int
    after: str = ""


@dataclass(frozen=True)
class Requeue:
    """This job is queued again under its id."""

    job: str


@dataclass(frozen=True)
class Restart:
    """This job trains again at once, on these nodes of its allocation."""

    nodes: tuple[str, ...]


Action = Train | Leave | EndChain | Avoid | Submit | Requeue | Restart


def decide(event: Event, record: Record) -> tuple[Action, ...]:
    """What to do about an event, from the record before it."""
    after = applied(event, record)
    if isinstance(event, Began):
        return _at_begin(event, record, after)
    if isinstance(event, Ended):
        return _at_end(event, after)
    running = after.attempts[-1].job if _is_running(after) else ""
    return _refill(after, running, at_least=0 if after.waiting or running else 1)


def applied(event: Event, record: Record) -> Record:
    """The record with the event in it."""
    if isinstance(event, Continued):
        return replace(record, judged_from=len(record.attempts), ended="", stop_file="")
    waiting = tuple(job for job in record.waiting if job != event.job)
    if isinstance(event, Began):
        attempt = Attempt(event.job, event.at, event.step, nodes=event.nodes, is_inside=event.is_inside)
        return replace(record, attempts=(*record.attempts, attempt), waiting=waiting)
    closed = tuple(
        replace(attempt, ended=event.at, cause=event.cause, last_step=event.step, lost_nodes=event.lost_nodes)
        if attempt.job == event.job and attempt.is_open
        else attempt
        for attempt in record.attempts
    )
    return replace(record, attempts=closed, waiting=waiting)


def seconds_left(record: Record) -> float:
    """What is left of the total; an attempt that runs has all of its time."""
    used, of_allocation = 0.0, 0.0
    for attempt in record.attempts:
        of_allocation = of_allocation if attempt.is_inside else 0.0
        seconds = _used(attempt, record.terms.time - of_allocation)
        used, of_allocation = used + seconds, of_allocation + seconds
    return record.terms.total - used


def chosen(nodes: tuple[str, ...], record: Record, lost: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The nodes of an allocation that train: those that never failed first, none that just did; none at all
    where too few are left."""
    failed = {node for attempt in record.attempts for node in attempt.lost_nodes} | {*record.bad_nodes}
    standing = sorted((node for node in nodes if node not in lost), key=lambda node: node in failed)
    best = set(standing[: record.terms.nodes])
    return tuple(node for node in nodes if node in best) if len(best) == record.terms.nodes else ()


def _at_begin(event: Began, record: Record, after: Record) -> tuple[Action, ...]:
    if record.ended:
        return (Leave(record.ended),)
    if record.stop_file:
        why = _stop_words(record)
        return (EndChain(why, after.waiting), Leave(why))
    if record.attempts[record.judged_from :] and seconds_left(record) <= 0:
        return (EndChain(USED_UP, after.waiting), Leave(USED_UP))
    avoid = (
        (Avoid(after.avoided, after.waiting),)
        if after.bad_nodes and after.terms.avoid and after.waiting
        else ()
    )
    return (Train(), *avoid, *_refill(after, event.job))


def _at_end(event: Ended, after: Record) -> tuple[Action, ...]:
    why = _reason_to_end(event, after)
    if why:
        return (EndChain(why, after.waiting),)
    inside = _inside(event, after)
    if after.terms.requeue and not inside:
        return _again(event, after)
    avoid = (Avoid(after.avoided, after.waiting),) if event.lost_nodes else ()
    return (*avoid, Restart(inside)) if inside else (*avoid, *_refill(after, event.job))


def _inside(event: Ended, after: Record) -> tuple[str, ...]:
    """The nodes on which the same job trains again without a queue; none where it cannot, or not for long."""
    terms = after.terms
    is_mendable = event.cause in (*FAULTS, Cause.HUNG)
    if not (terms.nodes and is_mendable and event.seconds_left > 2 * terms.notice):
        return ()
    return chosen(event.standing, after, event.lost_nodes)


def _again(event: Ended, after: Record) -> tuple[Action, ...]:
    """The same job once more; one that the scheduler took is queued again already. Only then may its nodes
    be changed."""
    again = () if event.cause is Cause.TAKEN else (Requeue(event.job),)
    return (*again, Avoid(after.avoided, (event.job,))) if event.lost_nodes else again


def _reason_to_end(event: Ended, after: Record) -> str:
    """Why no further attempt makes sense; empty where one does."""
    terms, judged = after.terms, after.attempts[after.judged_from :]
    if event.cause is Cause.FINISHED or event.cause in FOR_EVER:
        return event.cause.value
    if after.stop_file:
        return _stop_words(after)
    if _trailing(judged, lambda attempt: attempt.cause is Cause.FULL) >= FULLS:
        return Cause.FULL.value
    faultless = (Cause.TAKEN, Cause.FULL)  # no fault of the program
    uncut = tuple(attempt for attempt in judged if attempt.cause not in faultless)
    if _trailing(uncut, lambda attempt: not attempt.has_progressed) >= terms.idle:
        return f"no progress over {terms.idle} attempts: no newer checkpoint"
    if _trailing(judged, lambda attempt: _failed_soon(attempt, terms)) >= terms.failures:
        return f"{terms.failures} attempts in a row failed"
    if seconds_left(after) <= 0:
        return USED_UP
    return ""


def _refill(record: Record, newest: str, at_least: int = 0) -> tuple[Action, ...]:
    """The jobs that the queue lacks: as many as the time left needs, and no more than it may hold."""
    needed = 1 + max(0, math.ceil(seconds_left(record) / record.terms.time))  # and a spare
    room = record.terms.links - _is_running(record)
    count = max(at_least, min(needed, room) - len(record.waiting))
    return (Submit(count, record.waiting[-1] if record.waiting else newest),) if count > 0 else ()


def _is_running(record: Record) -> bool:
    return bool(record.attempts) and record.attempts[-1].is_open


def _used(attempt: Attempt, whole: float) -> float:
    """Seconds of an attempt; one that had all of its time counts as `whole`."""
    if attempt.ended is None or attempt.cause in WHOLE:
        return max(0.0, whole)
    return max(0.0, attempt.ended - attempt.began)


def _failed_soon(attempt: Attempt, terms: Terms) -> bool:
    return attempt.cause is Cause.FAILED and _used(attempt, terms.time) < terms.soon


def _trailing(attempts: tuple[Attempt, ...], is_bad: Callable[[Attempt], bool]) -> int:
    """How many of the last attempts are bad, in a row."""
    return next((n for n, attempt in enumerate(reversed(attempts)) if not is_bad(attempt)), len(attempts))


def _stop_words(record: Record) -> str:
    return f"{STOPPED}{record.stop_file} is there"
