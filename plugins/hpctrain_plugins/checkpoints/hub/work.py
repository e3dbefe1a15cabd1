"""Publishes checkpoints one after the other: convert, compare, upload, evaluate, each once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from hpctrain.errors import HpctrainError, NotReachable, Problem
from hpctrain_plugins.checkpoints.hub.found import Found
from hpctrain_plugins.checkpoints.hub.ledger import Ledger
from hpctrain_plugins.checkpoints.hub.remote import Remote

RANDOM = "random"
_LONGEST_DELAY = 43_200.0


@attrs.frozen(kw_only=True)
class Task:
    """What to publish and where; a repository that is None is left out."""

    found: list[Found]
    place: Path
    """Where conversions and the ledger lie."""
    model: str | None
    raw: str | None
    private: bool = False
    delay: float = 0.0
    """Seconds before the first upload."""
    remove: bool = False
    """Remove a conversion once it is published."""


@attrs.define(kw_only=True)
class Row:
    """What became of one checkpoint."""

    step: int
    model: str = "-"
    raw: str = "-"
    eval: str = "-"
    problems: list[Problem] = attrs.field(factory=list)
    code: int = 0
    """The exit code of its first problem."""


@attrs.frozen(kw_only=True)
class Crew:
    """What the work is done with."""

    remote: Callable[[str], Remote]
    convert: Callable[[Path, Path], object]
    evaluate: Callable[[Path, str], object] | None
    say: Callable[[str], object]
    sleep: Callable[[float], None]


def delay(said: str) -> float:
    """SECONDS, or `random`: up to half a day, so that many jobs do not come at once."""
    return random.uniform(0, _LONGEST_DELAY) if said == RANDOM else float(said)  # noqa: S311


def planned(task: Task, ledger: Ledger) -> list[Row]:
    """What is published already and what would be, as the ledger says."""
    done = ledger.done()

    def word(found: Found, repository: str | None) -> str:
        return "-" if repository is None else done.get((found.step, repository), "to do")

    return [Row(step=f.step, model=word(f, task.model), raw=word(f, task.raw)) for f in task.found]


def publish(task: Task, ledger: Ledger, crew: Crew) -> list[Row]:
    """One row per checkpoint; a damaged one is told in its row and does not stop the others."""
    return _Work(task, ledger, crew).rows()


class _Work:
    def __init__(self, task: Task, ledger: Ledger, crew: Crew) -> None:
        self._task, self._ledger, self._crew = task, ledger, crew
        self._done, self._judged = ledger.done(), ledger.judged()
        self._remotes: dict[str, Remote] = {}
        self._delayed = False

    def rows(self) -> list[Row]:
        return list(self._rows())

    def _rows(self) -> Iterable[Row]:
        for found in self._task.found:
            row = Row(step=found.step)
            try:
                self._one(found, row)
            except NotReachable:
                raise
            except HpctrainError as error:
                self._ledger.note("failed", found.step, "", why=str(error))
                row.problems += error.problems
                row.code = error.exit_code
            yield row

    def _one(self, found: Found, row: Row) -> None:
        task = self._task
        if task.raw:
            row.raw = "failed"
            row.raw = self._published(found, task.raw, lambda: found.path)
        if task.model:
            row.model = "failed"
            row.model = self._published(found, task.model, lambda: self._converted(found))
            row.eval = self._evaluated(found, task.model)
            if task.remove:
                _remove(self._folder(found))

    def _folder(self, found: Found) -> Path:
        return self._task.place / found.path.name

    def _converted(self, found: Found) -> Path:
        """The conversion; a folder appears whole, so one that is there is finished."""
        out = self._folder(found)
        if not out.exists():
            self._crew.convert(found.path, out)
        return out

    def _published(self, found: Found, repository: str, folder: Callable[[], Path]) -> str:
        if (found.step, repository) in self._done:
            return self._done[found.step, repository]
        here = folder()
        remote = self._remote(repository)
        if remote.holds(found.revision, here):
            self._ledger.note("exists", found.step, repository)
            return "exists"
        self._crew.say(f"{repository}@{found.revision}")
        commit = remote.upload(found.revision, here)
        self._ledger.note("uploaded", found.step, repository, commit=commit)
        return "uploaded"

    def _remote(self, repository: str) -> Remote:
        if not self._delayed and self._task.delay:
            self._crew.sleep(self._task.delay)
        self._delayed = True
        if repository not in self._remotes:
            remote = self._crew.remote(repository)
            remote.make(private=self._task.private)
            self._remotes[repository] = remote
        return self._remotes[repository]

    def _evaluated(self, found: Found, repository: str) -> str:
        if self._crew.evaluate is None:
            return "-"
        if found.step not in self._judged:
            self._crew.evaluate(self._converted(found), found.revision)
            self._ledger.note("evaluated", found.step, repository)
        return "ok"


def _remove(folder: Path) -> None:
    """Remove a conversion of ours."""
    import shutil

    if folder.is_dir():
        shutil.rmtree(folder)
