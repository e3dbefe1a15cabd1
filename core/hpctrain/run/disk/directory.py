"""A run directory: `<runs>/<name>/<number>-<digest8>/`, whole from the moment it can be seen."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from attrs import frozen

from hpctrain.errors import ConfigError, HpctrainError, IntegrityError
from hpctrain.model.names import PLAN
from hpctrain.run.disk.record import Record
from hpctrain.run.system import files
from hpctrain_job.files import trust

if TYPE_CHECKING:
    from hpctrain.model.train import Layout

_IDENTITY = "id"
_SCRIPT = "code/identity.sh"
"""A run without it is of an earlier version: its scripts take the name of their folder."""
_IDENTITY_TEXT = re.compile(r"(?P<name>\w[\w.-]{0,99})\n(?P<place>/.*)\n", re.ASCII | re.DOTALL)
_NUMBERED = re.compile(r"(?P<number>[1-9]\d{0,8})-(?P<digest>[0-9a-f]{8})\Z", re.ASCII)


@frozen(order=False)
class RunDirectory:
    """One numbered run on disk."""

    path: Path
    """The folder."""

    @property
    def name(self) -> str:
        """What the run file calls the run."""
        return self.path.parent.name

    @property
    def number(self) -> int:
        """Which of the runs of this name it is, from 1."""
        match = _NUMBERED.match(self.path.name)
        return int(match["number"]) if match else 0

    @property
    def digest8(self) -> str:
        """The first eight digits of the plan's digest."""
        return self.path.name.rpartition("-")[2]

    @property
    def title(self) -> str:
        """`name/number`, as people call it; an ejected run's path, which is what commands find it by."""
        return f"{self.name}/{self.number}" if self.number else str(self.path)

    @property
    def own_name(self) -> str:
        """What its folders of checkpoints and tokens and its stop file are called, wherever it lies: made
        once, and kept in its file `id`. The folder's name where it has none yet, or has that of the run that
        it is a copy of."""
        name, place = self._identity()
        return self.path.name if not name or self._is_copy(name, place) else name

    def identify(self) -> str:
        """The same, written down before anything is called by it; `identity.sh` does it for scripts."""
        name, place = self._identity()
        is_settled = bool(name) and _is_same(place / _IDENTITY, self.path / _IDENTITY)
        if is_settled or not (self.path / _SCRIPT).is_file():
            return self.own_name
        if name and not self._is_copy(name, place):
            files.write(self.path / _IDENTITY, f"{name}\n{self.path}\n")  # it was moved
            return name
        with files.naming(self.path / _IDENTITY):
            (self.path / _IDENTITY).unlink(missing_ok=True)
            _write_identity(self.path, self.path)
        return self._identity()[0]

    def _identity(self) -> tuple[str, Path]:
        """Its own name and where it was made or seen last; the name is empty where nobody made one."""
        path = self.path / _IDENTITY
        with files.naming(path, "read"):
            try:
                text = _beginning(path).decode("utf-8", "surrogateescape")
            except FileNotFoundError:
                return "", self.path
        match = _IDENTITY_TEXT.fullmatch(text)
        if not match:
            raise IntegrityError.of("run-id", f"{path} is damaged", where=str(path))
        return match["name"], Path(match["place"])

    def _is_copy(self, name: str, place: Path) -> bool:
        """Whether the run of this name still lies there, and is another folder."""
        path = place / _IDENTITY
        if place == self.path or _is_same(path, self.path / _IDENTITY):
            return False
        try:
            return _beginning(path).split(b"\n")[0] == name.encode()
        except OSError:
            return False

    @property
    def plan(self) -> Path:
        """The file with the plan's decisions."""
        return self.path / PLAN

    @property
    def layout(self) -> Layout | None:
        """How its trainer names checkpoints; None where it does not declare that."""
        from hpctrain.run.disk.kept_plan import (
            KeptPlan,  # cattrs is imported where a run is read, not where it is made
        )

        return KeptPlan.of(self.plan).train.checkpoints

    @property
    def record(self) -> Record:
        """Every event of the run."""
        return Record(self.path / "record.jsonl")

    @property
    def metrics(self) -> Path:
        """The file that the trainer writes its metrics into."""
        return self.path / "metrics.jsonl"

    @property
    def logs(self) -> Path:
        """The folder of the steps' logs."""
        return self.path / "logs"

    def log(self, step: str, rank: int | None = None) -> Path:
        """Where a step, or one rank of it, writes."""
        return self.logs / (f"{step}.log" if rank is None else f"{step}.rank{rank}.log")

    def step(self, step: str) -> Path:
        """The folder of a step's scripts."""
        return self.path / "steps" / step

    def finished(self, step: str) -> bool:
        """Whether the step ended well; its script would end at once."""
        return os.path.exists(self.step(step) / "finished")  # noqa: PTH110  (False where it may not be read)

    def exists(self) -> bool:
        """Whether it is a run that can be read here."""
        return os.path.isfile(self.plan)  # noqa: PTH113  (False where its folder may not be entered)

    def need_own(self) -> None:
        """IntegrityError unless the directory is this user's alone to write: what lies in it is executed."""
        files.need_own(self.path)

    def need_trusted(self, accepted: trust.Accepted) -> None:
        """IntegrityError where somebody who is not accepted could put another folder in its place."""
        files.need_trusted(self.path, accepted)

    @classmethod
    def create(
        cls,
        root: Path,
        name: str,
        digest: str,
        contents: Mapping[str, str | bytes],
        accepted: trust.Accepted = trust.NOBODY_ELSE,
    ) -> RunDirectory:
        """Write a new run with the next free number of `name`; scripts (`*.sh`) may be executed.

        Two creators at once get different numbers; a crash leaves nothing but a hidden folder.
        IntegrityError where somebody who is not accepted could put another folder in the run's place.
        """
        home = root / name
        files.need_trusted(home, accepted)
        files.make_folder(home)
        files.need_trusted(home, accepted)
        new = home / f".new-{uuid.uuid4().hex}"
        try:
            _fill(new, contents)
            return cls(_number(new, home, digest[:8]))
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise

    @classmethod
    def at(cls, path: Path) -> RunDirectory | None:
        """The run directory at `path`, or None when there is none."""
        absolute = os.path.abspath(path)  # noqa: PTH100  (as people say it: links stay)
        # Unlike Path.is_file this is False for names too long to be one.
        return cls(Path(absolute)) if os.path.isfile(f"{absolute}/{PLAN}") else None  # noqa: PTH113

    @classmethod
    def all(cls, home: Path) -> list[RunDirectory]:
        """The runs of one name, oldest first."""
        names = _listed(home)
        runs = [cls(home / name) for name in names if _NUMBERED.match(name)]
        return sorted(runs, key=lambda run: run.number)

    @classmethod
    def find(cls, reference: str, root: Path) -> RunDirectory:
        """The run that `reference` means: a path, `name/number`, or a name for its newest run."""
        directory = cls.at(Path(reference)) if reference else None
        if directory:
            return directory
        name, _, number = reference.partition("/")
        runs = cls.all(root / name) if name in _listed(root) else []
        matches = [run for run in runs if not number or str(run.number) == number]
        if matches:
            return matches[-1]
        raise _unknown(reference, name, runs, root)


def _fill(new: Path, contents: Mapping[str, str | bytes]) -> None:
    files.make_folder(new)
    for name, content in contents.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts:
            raise ConfigError.of("path", f"{name!r} is not in the run directory")
        path = new / pure
        files.make_folder(path.parent)
        with files.naming(path):
            files.write_new(path, content, program=pure.suffix == ".sh")
    for folder in ("logs", "steps"):
        files.make_folder(new / folder)


def _number(new: Path, home: Path, digest8: str) -> Path:
    """Rename `new` to the next number. The number is claimed by a folder first, because two runs
    with different digests would not collide by name."""
    while True:
        claim, number = _claim(home)
        try:
            # Somebody may have used this number and given the claim back since we looked.
            if all(run.number != number for run in RunDirectory.all(home)):
                path = home / f"{number}-{digest8}"
                with files.naming(path):
                    _write_identity(new, path)
                    new.rename(path)
                    files.sync_folder(home)
                return path
        finally:
            with contextlib.suppress(OSError):
                claim.rmdir()


def _write_identity(folder: Path, place: Path) -> None:
    """Give the run in `folder`, whose place is there, a name that no other has, unless somebody just did: by
    which people recognise its folder."""
    legible = re.sub(r"^[.-]", "_", re.sub(r"[^A-Za-z0-9._-]", "_", place.name))[:60]
    fresh = folder / f"{_IDENTITY}.{uuid.uuid4().hex}"
    files.write_new(fresh, f"{legible}-{uuid.uuid4().hex[:6]}\n{place}\n")
    with contextlib.suppress(FileExistsError):
        os.link(fresh, folder / _IDENTITY)
    fresh.unlink()


def _is_same(path: Path, second_path: Path) -> bool:
    try:
        return path.samefile(second_path)
    except OSError:
        return False


def _beginning(path: Path) -> bytes:
    """What of a file may be a name and a place; the place may be in another user's folder by now."""
    with path.open("rb") as file:
        return file.read(8192)


def _claim(home: Path) -> tuple[Path, int]:
    number = _newest(home) + 1
    with files.naming(home):
        while True:
            claim = home / f".claim-{number}"
            try:
                claim.mkdir(files.FOLDER)
            except FileExistsError:
                number += 1  # held by another creator, or left behind by a crash
            else:
                return claim, number


def _newest(home: Path) -> int:
    return max((run.number for run in RunDirectory.all(home)), default=0)


def _unknown(reference: str, name: str, runs: list[RunDirectory], root: Path) -> HpctrainError:
    if runs:
        newest = runs[-1].title
        message = f"no run {reference!r}; the newest of {name} is {newest}"
        return ConfigError.of("no-run", message, hint=newest)
    near = difflib.get_close_matches(name, _listed(root), n=1)
    return ConfigError.of("no-run", f"no run {reference!r} in {root}", hint=next(iter(near), "hpctrain runs"))


def _listed(folder: Path) -> list[str]:
    with files.naming(folder, "read"):
        try:
            return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []
