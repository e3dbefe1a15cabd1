"""Ask the scheduler no more often than the site wants; between two questions the last answer counts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.errors import NotReachable, Problem
from hpctrain.model.job import JobState
from hpctrain.plan.decode import decode
from hpctrain.run import files
from hpctrain.run.submit import Query
from hpctrain.run.turns import one_at_a_time
from hpctrain_job import documents

LOCK_SECONDS = 65.0
"""How long to wait for another command's question: a little longer than a scheduler is given."""


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

        A scheduler that is silent gives the last answer too, with its age; a job that no answer
        names is unknown to the caller, never done.
        """
        question = Question(ids=frozenset(ids), tags=frozenset(tags))
        if not (question.ids or question.tags):
            return Answer()
        answer = self._young(question)
        if answer is not None:
            return answer
        with one_at_a_time(
            self.cache.with_suffix(".lock"), LOCK_SECONDS
        ):  # a hundred commands at once are one question too
            return self._young(question) or self._query_scheduler(question)

    def _young(self, question: Question) -> Answer | None:
        """The last answer, when it is younger than the floor and covers what is wanted."""
        last_question, last = self._last()
        return last if question.within(last_question) and last.age_s < self.floor_s else None

    def _query_scheduler(self, question: Question) -> Answer:
        last_question, last = self._last()
        combined = question.with_live(last.jobs)  # so that two runs that share a cache do not ask in turns
        try:
            jobs = tuple(self.query(tuple(sorted(combined.ids)), tuple(sorted(combined.tags))))
        except NotReachable as error:
            return attrs.evolve(last if question.within(last_question) else Answer(), silent=error.problems)
        self._keep(combined, jobs)
        return Answer(jobs=jobs)

    def _last(self) -> tuple[Question, Answer]:
        """What was asked last and what the answer was; nothing when there is no such file."""
        try:
            document = documents.read(self.cache)
            last_question = decode(document, Question)
            age = self.clock() - float(document["at"])
            jobs = tuple(decode(fields, JobState) for fields in document["jobs"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return Question(), Answer()  # a cache that cannot be read is no cache
        return (last_question, Answer(jobs=jobs, age_s=age)) if age >= 0 else (Question(), Answer())

    def _keep(self, question: Question, jobs: tuple[JobState, ...]) -> None:
        rows = [{**attrs.asdict(job), "state": job.state.value} for job in jobs]
        document = {
            "at": self.clock(),
            "ids": sorted(question.ids),
            "tags": sorted(question.tags),
            "jobs": rows,
        }
        files.make_folder(self.cache.parent)
        files.write(self.cache, json.dumps(document))


@frozen(kw_only=True)
class Question:
    """The jobs of a question."""

    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    def within(self, larger: Question) -> bool:
        """Whether `other` asks for all of these."""
        return self.ids <= larger.ids and self.tags <= larger.tags

    def with_live(self, jobs: Iterable[JobState]) -> Question:
        """These and the jobs of an earlier answer that were not over."""
        live = [job for job in jobs if not job.state.over]
        return Question(
            ids=self.ids | {job.id for job in live}, tags=self.tags | {job.tag for job in live if job.tag}
        )
