"""Ask the scheduler no more often than the site wants; between two questions the last answer counts."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.errors import NotReachable, Problem
from hpctrain.model.job import JobState
from hpctrain.plan.decode import decode
from hpctrain.plan.encode import encode
from hpctrain.run.steps.submit import Query
from hpctrain.run.system import files
from hpctrain_job.files import documents
from hpctrain_job.files.shared import one_at_a_time

LOCK_SECONDS = 65.0
"""How long to wait for another command's question: a little longer than a scheduler is given."""
REMEMBERED = 200
"""Jobs that are over, and what one costs is some 200 bytes in a file that is read for every question."""


@frozen(kw_only=True)
class Answer:
    """What the scheduler said `age_s` ago; `silent` says why it was not asked again."""

    jobs: tuple[JobState, ...] = ()
    age_s: float = 0.0
    silent: tuple[Problem, ...] = ()


@frozen(kw_only=True)
class Poll:
    """One user's questions to one scheduler; `cache` is a private file that all commands share."""

    query: Query
    cache: Path
    floor_s: float = 10.0
    clock: Callable[[], float] = time.time

    def ask(self, ids: Iterable[str], tags: Iterable[str]) -> Answer:
        """One query for all, or the last answer when it is younger than the floor and covers them.

        A scheduler that is silent gives the last answer too, with its age, and is left alone for as long as
        one that answers; a job that no answer names is unknown to the caller, never done.
        """
        question = Question(ids=frozenset(ids), tags=frozenset(tags))
        if not (question.ids or question.tags):
            return Answer()
        answer = self._young(question)
        if answer is not None:
            return answer
        files.make_folder(self.cache.parent)
        with one_at_a_time(
            self.cache.with_suffix(".lock"), LOCK_SECONDS
        ):  # a hundred commands at once are one question too
            return self._young(question) or self._query_scheduler(question)

    def _young(self, question: Question) -> Answer | None:
        """The last answer or silence, when it is younger than the floor and covers what is wanted."""
        cached, now = self._cached(), self.clock()
        if cached.silence is not None and 0 <= now - cached.silence.at < self.floor_s:
            return cached.unanswered(question, now)
        answer = cached.answer(question, now)
        return answer if answer is not None and answer.age_s < self.floor_s else None

    def _query_scheduler(self, question: Question) -> Answer:
        cached = self._cached()
        live = cached.jobs if cached.answer(Question(), self.clock()) is not None else ()
        combined = question.with_live(live)  # so that two runs that share a cache do not ask in turns
        try:
            jobs = tuple(self.query(tuple(sorted(combined.ids)), tuple(sorted(combined.tags))))
        except NotReachable as error:
            now = self.clock()
            cached = attrs.evolve(cached, silence=Silence(at=now, problems=error.problems))
            self._keep(cached)
            return cached.unanswered(question, now)
        over = cached.over_after(jobs)
        jobs += combined.forgotten(over, jobs)
        self._keep(Cached(at=self.clock(), ids=combined.ids, tags=combined.tags, jobs=jobs, over=over))
        return Answer(jobs=jobs)

    def _cached(self) -> Cached:
        """What was asked last and what the answer was; nothing when there is no such file."""
        try:
            return decode(documents.read(self.cache), Cached)
        except (OSError, ValueError):
            return Cached()  # a cache that cannot be read is no cache

    def _keep(self, cached: Cached) -> None:
        files.make_folder(self.cache.parent)
        files.write(self.cache, json.dumps(encode(cached)))


@frozen(kw_only=True)
class Question:
    """The jobs of a question."""

    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    def within(self, larger: Question) -> bool:
        """Whether `other` asks for all of these."""
        return self.ids <= larger.ids and self.tags <= larger.tags

    def forgotten(self, over: Iterable[JobState], jobs: Iterable[JobState]) -> tuple[JobState, ...]:
        """Of these jobs that were over, those that are meant and that the scheduler no longer names."""
        named = {job.tag for job in jobs}
        return tuple(job for job in over if job.tag in self.tags - named)

    def with_live(self, jobs: Iterable[JobState]) -> Question:
        """These and the jobs of an earlier answer that were not over."""
        live = [job for job in jobs if not job.state.over]
        return Question(
            ids=self.ids | {job.id for job in live}, tags=self.tags | {job.tag for job in live if job.tag}
        )


@frozen(kw_only=True)
class Silence:
    """When the scheduler last gave no answer, and why."""

    at: float
    problems: tuple[Problem, ...]


@frozen(kw_only=True)
class Cached:
    """The last answer as the commands of a user share it, and the silence since."""

    at: float = math.inf
    """When; for ever in the future while nobody has answered."""
    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    jobs: tuple[JobState, ...] = ()
    silence: Silence | None = None
    over: tuple[JobState, ...] = ()
    """Jobs that an answer called over, the latest last: a scheduler forgets them, and a job that was killed
    before it wrote its record has no other witness."""

    def over_after(self, jobs: Iterable[JobState]) -> tuple[JobState, ...]:
        """The jobs that are over by this answer or an earlier one; one that is queued again is not."""
        latest = {job.tag: job for job in (*self.over, *jobs) if job.tag}
        return tuple(job for job in latest.values() if job.state.over)[-REMEMBERED:]

    def answer(self, question: Question, now: float) -> Answer | None:
        """The answer, where it covers what is wanted; one from the future is none."""
        age = now - self.at
        covered = question.within(Question(ids=self.ids, tags=self.tags))
        return Answer(jobs=self.jobs, age_s=age) if covered and age >= 0 else None

    def unanswered(self, question: Question, now: float) -> Answer:
        """What is known while the scheduler is silent: the last answer, with its age."""
        assert self.silence is not None
        return attrs.evolve(self.answer(question, now) or Answer(), silent=self.silence.problems)
