"""A chain under seeded faults, with a virtual clock: the queue, the nodes and the disk are made up, what
decides is the product's own function."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from hpctrain_job.chain import (
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
        self.clock += self.dice.expovariate(1 / 1800)
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
        """Train until a fault, the warning or the goal."""
        while self.disk and not self.disk[-1][1]:
            self.disk.pop()  # as `hpctrain_job.resume` passes over what its manifest denies
            self.told.faults["corrupt"] += 1
        if self.disk:
            self.told.resumed_from.append(self.disk[-1])
        began, step = self.clock, self.newest()
        cause, lasts, lost = self.end_of(nodes)
        usable = max(0.0, lasts - self.work.start)
        stretch = self.work.every + self.work.save
        saved = step
        for _ in range(int(usable // stretch)):
            saved += self.work.every
            self.save(min(saved, self.work.goal))
        reached = saved + min(usable % stretch, self.work.every)
        if self.work.diverges_at and reached >= self.work.diverges_at:
            cause, lost = Cause.DIVERGED, ()
        elif reached >= self.work.goal:
            lasts, cause, lost = self.work.start + self.work.goal - step, Cause.FINISHED, ()
            self.save(self.work.goal)
        elif cause is Cause.SAVED:
            self.save(int(reached))
        self.clock = began + lasts
        self.told.allocated += lasts
        self.told.faults[cause.value] += 1
        self.told.step = self.newest()
        if cause is Cause.LOST and self.terms.requeue:  # Slurm does, once it holds the node for lost
            self.told.record = replace(self.told.record, waiting=(job,))
        elif cause is not Cause.LOST:
            self.tell(Ended(job, self.clock, cause, self.newest(), lost), inside=True)

    def save(self, step: int) -> None:
        self.disk.append((step, self.dice.random() >= self.faults.corrupt or step == self.work.goal))

    def end_of(self, nodes: tuple[str, ...]) -> tuple[Cause, float, tuple[str, ...]]:
        """What ends an attempt on these nodes, after how long, and which node is to blame."""
        weight = [30.0 if int(node[1:]) < self.faults.worse else 1.0 for node in nodes]
        node_at = self.dice.expovariate(sum(weight) / len(weight) / self.faults.node)
        program_at = self.dice.expovariate(1 / self.faults.program)
        warned_at = float(self.terms.time - self.work.notice)
        first = min(node_at, program_at, warned_at)
        if first == warned_at:
            late = self.dice.random() < self.faults.unsaved
            return (Cause.LIMIT, float(self.terms.time), ()) if late else (Cause.SAVED, warned_at, ())
        if first == program_at:
            return Cause.FAILED, first, ()
        (node,) = self.dice.choices(nodes, weight)
        silent = self.dice.random() < self.faults.silent
        return (Cause.LOST, first, ()) if silent else (Cause.NODE, first, (node,))
