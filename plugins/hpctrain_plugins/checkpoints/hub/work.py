"""Publishes checkpoints one after the other: convert, compare, upload, evaluate, each once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from hpctrain.plugin import HpctrainError, NotReachable, Problem
from hpctrain_plugins.checkpoints.hub.experiment import HubCheckpoint
from hpctrain_plugins.checkpoints.hub.leaving import files
from hpctrain_plugins.checkpoints.hub.ledger import Ledger
from hpctrain_plugins.checkpoints.hub.remote import Remote

RANDOM = "random"
TO_CONVERT = "to convert"
"""What a dry run says of a model that is not made yet; its files are known afterwards."""
_LONGEST_DELAY = 43_200.0


@attrs.frozen(kw_only=True)
class Task:
    """What to publish and where; a repository that is None is left out."""

    checkpoints: list[HubCheckpoint]
    place: Path
    """Where conversions and the ledger lie."""
    model: str | None
    raw: str | None
    private: bool = False
    delay: float = 0.0
    """Seconds before the first upload."""
    remove: bool = False
    """Remove a conversion once it is published."""

    def conversion_of(self, checkpoint: HubCheckpoint) -> Path:
        """Where it is converted to; the folder appears whole, so one that is there is finished."""
        return self.place / checkpoint.path.name


@attrs.define(kw_only=True)
class Row:
    """One row of the summary: what was done with one checkpoint."""

    step: int
    model: str = "-"
    raw: str = "-"
    eval: str = "-"
    leaving: dict[str, dict[str, int]] = attrs.field(factory=dict)
    """Of a dry run: repository -> the files that would be uploaded, with their bytes."""
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


def delay(setting: str) -> float:
    """SECONDS, or `random`: up to half a day, so that many jobs do not come at once."""
    return random.uniform(0, _LONGEST_DELAY) if setting == RANDOM else float(setting)  # noqa: S311


def planned(task: Task, ledger: Ledger) -> list[Row]:
    """What is published already, as the ledger says, and each file that would be."""
    done = ledger.done()

    def word(row: Row, repository: str | None, folder: Path) -> str:
        if repository is None:
            return "-"
        if (row.step, repository) in done:
            return done[row.step, repository]
        if not folder.exists():
            return TO_CONVERT
        try:
            row.leaving[repository] = {name: file.stat().st_size for name, file in files(folder).items()}
        except HpctrainError as error:
            row.problems += error.problems
            row.code = row.code or error.exit_code
            return "refused"
        return "to do"

    rows = []
    for checkpoint in task.checkpoints:
        row = Row(step=checkpoint.step)
        row.raw = word(row, task.raw, checkpoint.path)
        row.model = word(row, task.model, task.conversion_of(checkpoint))
        rows.append(row)
    return rows


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
        for checkpoint in self._task.checkpoints:
            row = Row(step=checkpoint.step)
            try:
                self._process(checkpoint, row)
            except NotReachable:
                raise
            except HpctrainError as error:
                self._ledger.note("failed", checkpoint.step, "", why=str(error))
                row.problems += error.problems
                row.code = error.exit_code
            yield row

    def _process(self, checkpoint: HubCheckpoint, row: Row) -> None:
        task = self._task
        if task.raw:
            row.raw = "failed"
            row.raw = self._published(checkpoint, task.raw, lambda: checkpoint.path)
        if task.model:
            row.model = "failed"
            row.model = self._published(checkpoint, task.model, lambda: self._converted(checkpoint))
            row.eval = self._evaluated(checkpoint, task.model)
            if task.remove:
                _remove(task.conversion_of(checkpoint))

    def _converted(self, checkpoint: HubCheckpoint) -> Path:
        out = self._task.conversion_of(checkpoint)
        if not out.exists():
            self._crew.convert(checkpoint.path, out)
        return out

    def _published(self, checkpoint: HubCheckpoint, repository: str, folder: Callable[[], Path]) -> str:
        if (checkpoint.step, repository) in self._done:
            return self._done[checkpoint.step, repository]
        local_folder = folder()
        remote = self._remote(repository)
        if remote.holds(checkpoint.revision, local_folder):
            self._ledger.note("exists", checkpoint.step, repository)
            return "exists"
        self._crew.say(f"{repository}@{checkpoint.revision}")
        commit = remote.upload(checkpoint.revision, local_folder)
        self._ledger.note("uploaded", checkpoint.step, repository, commit=commit)
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

    def _evaluated(self, checkpoint: HubCheckpoint, repository: str) -> str:
        if self._crew.evaluate is None:
            return "-"
        if checkpoint.step not in self._judged:
            self._crew.evaluate(self._converted(checkpoint), checkpoint.revision)
            self._ledger.note("evaluated", checkpoint.step, repository)
        return "ok"


def _remove(folder: Path) -> None:
    """Remove a folder that this command converted a checkpoint into."""
    import shutil

    if folder.is_dir():
        shutil.rmtree(folder)
