"""A chain under seeded faults, with a virtual clock: the queue, the nodes and the disk are made up, what
decides is the product's own function."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from hpctrain_job.chain.decision import (
    Avoid,
    Began,
    Cause,
    Continued,
    EndChain,
    Ended,
    Event,
    Leave,
    Record,
    Requeue,
    Submit,
    Terms,
    Train,
    applied,
    decide,
)

NEVER = 1e15


@dataclass(frozen=True)
class Faults:
    """Mean times between faults of the whole job in seconds, and chances of one event."""

    node: float = 12 * 3600.0
    program: float = 200 * 3600.0
    silent: float = 0.3
    """Of a node fault: node 0 was it, and nobody writes an end."""
    unsaved: float = 0.3
    """Of a warning: the checkpoint is not whole in time."""
    corrupt: float = 0.02
    """Of a checkpoint: it does not verify when it is read."""
    refused: float = 0.1
    """Of a submission from inside of a job."""
    worse: int = 3
    """Nodes that fail thirty times as often as the others."""
    hang: float = NEVER
    """The mean time between two hangs, which a watch ends with a node's name."""
    taken: float = NEVER
    """The mean time between two preemptions."""


@dataclass(frozen=True)
class Work:
    """What is trained, and how. Times in seconds; one step takes one."""

    goal: int = 6 * 86400
    every: int = 1800
    save: int = 40
    start: int = 240
    notice: int = 120
    nodes: int = 64
    machine: int = 80
    queue: float = 1800
    """The mean wait of a job; nothing is allocated meanwhile."""
    detect: float = 45
    """How long a hang stands before its watch ends it."""
    spares: int = 0
    """Nodes of the allocation that take the place of those that fail, without a job of its own."""
    restart: float = 60
    """From a fault to the ranks stepping again inside of the allocation: with `spares` only."""
    diverges_at: int = 0
    """The step at which the loss stops being a number; 0: never."""


@dataclass
class Told:
    """What came of it."""

    record: Record
    faults: Counter[str] = field(default_factory=Counter)
    allocated: float = 0.0
    persons: int = 0
    """How often nobody was left to act, and a person had to continue."""
    resumed_from: list[tuple[int, bool]] = field(default_factory=list)
    """Each checkpoint that an attempt went on from, and whether it verifies."""
    step: int = 0
    started: list[str] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        """The share of the time on nodes that was a step of the result."""
        return self.step / self.allocated


class Simulator:
    """One run from its first submission to the end of its chain."""

    def __init__(self, seed: int, terms: Terms, work: Work, faults: Faults) -> None:
        self.dice = random.Random(seed)
        self.terms, self.work, self.faults = terms, work, faults
        self.clock, self.numbers = 0.0, 0
        self.disk: list[tuple[int, bool]] = []
        self.told = Told(Record(terms))
        self.running = False

    def run(self) -> Told:
        """Until the chain has ended for a reason."""
        self.tell(Continued(0.0))
        while not self.told.record.ended:
            if not self.told.record.waiting:  # the queue is empty, and no reason stands anywhere
                self.told.persons += 1
                self.close_lost()
                self.tell(Continued(self.clock))
            if self.told.record.waiting and not self.told.record.ended:
                self.job(self.told.record.waiting[0])
        return self.told

    def tell(self, event: Event, *, inside: bool = False) -> bool:
        """Ask the judge about an event and do what it answers; whether this job trains."""
        actions = decide(event, self.told.record)
        self.told.record = applied(event, self.told.record)
        for action in actions:
            self.carry_out(action, inside=inside)
        return Train() in actions

    def carry_out(self, action: object, *, inside: bool) -> None:
        record = self.told.record
        if isinstance(action, Submit):
            for _ in range(action.count):
                if inside and self.dice.random() < self.faults.refused:
                    self.told.faults["refused"] += 1
                    break
                self.numbers += 1
                record = replace(record, waiting=(*record.waiting, str(self.numbers)))
        elif isinstance(action, EndChain):
            assert set(action.jobs) == set(record.waiting)
            record = replace(record, ended=action.why, waiting=())
        elif isinstance(action, Avoid):
            assert action.nodes == record.avoided
        elif isinstance(action, Requeue):
            record = replace(record, waiting=(*record.waiting, action.job))
        else:
            assert isinstance(action, (Train, Leave))
        self.told.record = record

    def close_lost(self) -> None:
        """What the next one alive does first: say of an attempt without a word that it was lost."""
        last = self.told.record.attempts[-1] if self.told.record.attempts else None
        if last is not None and last.is_open:
            waiting = self.told.record.waiting
            self.tell(Ended(last.job, self.clock, Cause.LOST, self.newest()), inside=True)
            if self.terms.requeue and not self.told.record.ended:  # who speaks is that job, started again
                self.told.record = replace(self.told.record, waiting=waiting)

    def newest(self) -> int:
        return self.disk[-1][0] if self.disk else 0

    def job(self, job: str) -> None:
        """A job from its start to its end."""
        self.close_lost()
        self.clock += self.dice.expovariate(1 / self.work.queue) if self.work.queue else 0.0
        if self.told.record.ended:
            return
        assert not self.running, "two attempts at once"
        assert self.terms.requeue or job not in self.told.started, "a job is started once"
        self.told.started.append(job)
        avoided = self.told.record.avoided
        free = [node for node in (f"n{n}" for n in range(self.work.machine)) if node not in avoided]
        nodes = tuple(self.dice.sample(free, self.work.nodes))
        if not self.tell(Began(job, self.clock, self.newest(), nodes), inside=True):
            return
        self.running = True
        self.attempt(job, nodes)
        self.running = False

    def attempt(self, job: str, nodes: tuple[str, ...]) -> None:
        """Train until the job ends; faults that a spare node makes good are inside of it."""
        left, spares, start = float(self.terms.time), self.work.spares, float(self.work.start)
        while True:
            cause, lasts, lost = self.stretch(nodes, left, start)
            self.clock += lasts
            self.told.allocated += lasts
            self.told.faults[cause.value] += 1
            self.told.step = self.newest()
            left -= lasts
            needs_spare = cause in (Cause.NODE, Cause.LOST, Cause.HUNG)
            if self.work.spares and (spares if needs_spare else cause is Cause.FAILED) and left > 0:
                spares -= needs_spare
                start = self.work.restart
                continue
            break
        if cause is Cause.LOST and self.terms.requeue:  # Slurm does, once it holds the node for lost
            self.told.record = replace(self.told.record, waiting=(job,))
        elif cause is not Cause.LOST:
            if cause is Cause.TAKEN and self.terms.requeue:
                self.told.record = replace(self.told.record, waiting=(job,))
            self.tell(Ended(job, self.clock, cause, self.newest(), lost), inside=True)

    def stretch(
        self, nodes: tuple[str, ...], left: float, start: float
    ) -> tuple[Cause, float, tuple[str, ...]]:
        """Train from the newest checkpoint that verifies to whatever comes first."""
        while self.disk and not self.disk[-1][1]:
            self.disk.pop()  # as `hpctrain_job.keeping` sets aside what its manifest denies
            self.told.faults["corrupt"] += 1
        if self.disk:
            self.told.resumed_from.append(self.disk[-1])
        step = self.newest()
        cause, lasts, lost = self.end_of(nodes, left)
        usable = max(0.0, lasts - start - (self.work.detect if cause is Cause.HUNG else 0.0))
        stretch = self.work.every + self.work.save
        saved = step
        for _ in range(int(usable // stretch)):
            saved += self.work.every
            self.save(min(saved, self.work.goal))
        reached = saved + min(usable % stretch, self.work.every)
        if self.work.diverges_at and reached >= self.work.diverges_at:
            cause, lost = Cause.DIVERGED, ()
        elif reached >= self.work.goal:
            lasts, cause, lost = start + self.work.goal - step, Cause.FINISHED, ()
            self.save(self.work.goal)
        elif cause is Cause.SAVED:
            self.save(int(reached))
        return cause, lasts, lost

    def save(self, step: int) -> None:
        self.disk.append((step, self.dice.random() >= self.faults.corrupt or step == self.work.goal))

    def end_of(self, nodes: tuple[str, ...], left: float) -> tuple[Cause, float, tuple[str, ...]]:
        """What ends training on these nodes, after how long, and which node is to blame."""
        faults = self.faults
        weight = [30.0 if int(node[1:]) < faults.worse else 1.0 for node in nodes]
        warned_at = max(0.0, left - self.work.notice)
        at = {
            Cause.NODE: self.dice.expovariate(sum(weight) / len(weight) / faults.node),
            Cause.FAILED: self.dice.expovariate(1 / faults.program),
            Cause.HUNG: self.dice.expovariate(1 / faults.hang),
            Cause.TAKEN: self.dice.expovariate(1 / faults.taken),
        }
        cause = min(at, key=lambda cause: at[cause])
        if at[cause] >= warned_at:
            late = self.dice.random() < faults.unsaved
            return (Cause.LIMIT, left, ()) if late else (Cause.SAVED, warned_at, ())
        if cause is Cause.HUNG:
            return cause, min(left, at[cause] + self.work.detect), (self.dice.choice(nodes),)
        if cause is not Cause.NODE:
            return cause, at[cause], ()
        (node,) = self.dice.choices(nodes, weight)
        silent = self.dice.random() < faults.silent
        return (Cause.LOST, at[cause], ()) if silent else (Cause.NODE, at[cause], (node,))


def optimum(save: float, start: float, between: float, seed: int = 0, faults: int = 4000) -> float:
    """The goodput that the best interval would have under faults alone: no time limit, no hang, no damage."""
    dice = random.Random(seed)
    lasts = [dice.expovariate(1 / between) for _ in range(faults)]
    stretches, total = [max(0.0, seconds - start) for seconds in lasts], sum(lasts)
    intervals = [math.sqrt(2 * save * between) * 1.15**power for power in range(-12, 13)]
    return max(sum(s // (every + save) * every for s in stretches) / total for every in intervals)
