"""Ask the scheduler no more often than the site wants; between two questions the last answer counts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from hpctrain.errors import NotReachable, Problem
from hpctrain.model.frozen import frozen
from hpctrain.model.job import JobState, State
from hpctrain.run import files
from hpctrain.run.submit import Query

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
        wanted = Wanted(ids=frozenset(ids), tags=frozenset(tags))
        if not (wanted.ids or wanted.tags):
            return Answer()
        answer = self._young(wanted)
        if answer is not None:
            return answer
        with _alone(self.cache):  # a hundred commands at once are one question too
            return self._young(wanted) or self._asked(wanted)

    def _young(self, wanted: Wanted) -> Answer | None:
        """The last answer, when it is younger than the floor and covers what is wanted."""
        asked, last = self._last()
        return last if wanted.within(asked) and last.age_s < self.floor_s else None

    def _asked(self, wanted: Wanted) -> Answer:
        asked, last = self._last()
        both = wanted.with_live(last.jobs)  # so that two runs that share a cache do not ask in turns
        try:
            jobs = tuple(self.query(tuple(sorted(both.ids)), tuple(sorted(both.tags))))
        except NotReachable as error:
            return attrs.evolve(last if wanted.within(asked) else Answer(), silent=error.problems)
        self._keep(both, jobs)
        return Answer(jobs=jobs)

    def _last(self) -> tuple[Wanted, Answer]:
        """What was asked last and what the answer was; nothing when there is no such file."""
        try:
            kept = json.loads(self.cache.read_text())
            asked = Wanted(ids=frozenset(kept["ids"]), tags=frozenset(kept["tags"]))
            age = self.clock() - float(kept["at"])
            jobs = tuple(_job(fields) for fields in kept["jobs"])
        except (OSError, ValueError, KeyError, TypeError):
            return Wanted(), Answer()  # a cache that cannot be read is no cache
        return (asked, Answer(jobs=jobs, age_s=age)) if age >= 0 else (Wanted(), Answer())

    def _keep(self, asked: Wanted, jobs: tuple[JobState, ...]) -> None:
        rows = [{**attrs.asdict(job), "state": job.state.value} for job in jobs]
        said = {"at": self.clock(), "ids": sorted(asked.ids), "tags": sorted(asked.tags), "jobs": rows}
        files.make_folder(self.cache.parent)
        files.write(self.cache, json.dumps(said))


@frozen(kw_only=True)
class Wanted:
    """The jobs of a question."""

    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    def within(self, other: Wanted) -> bool:
        """Whether `other` asks for all of these."""
        return self.ids <= other.ids and self.tags <= other.tags

    def with_live(self, jobs: Iterable[JobState]) -> Wanted:
        """These and the jobs of an earlier answer that were not over."""
        live = [job for job in jobs if not job.state.over]
        return Wanted(
            ids=self.ids | {job.id for job in live}, tags=self.tags | {job.tag for job in live if job.tag}
        )


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """One question at a time; who cannot have the lock in time, or on a disk without locks, asks anyway."""
    files.make_folder(cache.parent)
    with cache.with_suffix(".lock").open("a") as file:
        end = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        yield


def _job(fields: dict[str, Any]) -> JobState:
    own = {**fields, "state": State(fields["state"]), "nodes": tuple(fields["nodes"])}
    own["asked"] = tuple(fields.get("asked", ()))
    return JobState(**own)
