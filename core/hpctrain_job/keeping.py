"""The checkpoints of a training, so that they can be trusted, whichever trainer writes them.

`check`, before the ranks: what is cut or damaged is moved out of the trainer's sight, and what names the
newest names one that verifies. `watch`, beside the ranks of a trainer that writes no manifests: each
checkpoint gets one once nothing of it changes any more, and of the older ones as many stay as the run file
says. Both run on the job's first node; job.sh starts them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpctrain_job import resume
from hpctrain_job.exit_codes import CONFIG
from hpctrain_job.files import documents
from hpctrain_job.resume import DAMAGED, Checkpoint

DROPPED = ".dropped-"
"""What the name of a checkpoint begins with while it is removed: no reader takes half of one."""
POLL = 10.0
"""Seconds between two looks; what is the same in both is written."""

Extent = tuple[tuple[str, int, int], ...]
"""Path, size and time of change of every file."""


@dataclass(frozen=True)
class Saves:
    """How a trainer saves: where, under which names, which file last, and which file names the newest."""

    folder: Path
    name: str
    last: str = ""
    pointer: str = ""

    def whole(self) -> list[Checkpoint]:
        """Those of which the trainer wrote all, oldest first."""
        return resume.complete(self.folder, self.name, self.last)

    def named(self) -> list[Checkpoint]:
        """All that have the name of one, whole or cut, oldest first."""
        return resume.complete(self.folder, self.name, "")

    def pointed(self) -> str:
        """The checkpoint that the trainer's own file names."""
        if not self.pointer:
            return ""
        try:
            return documents.text(self.folder / self.pointer).strip()
        except (OSError, ValueError):
            return ""


def check(saves: Saves) -> int:
    """Leave in the trainer's sight what it may go on from; 0, or CONFIG where there is nothing."""
    whole = saves.whole()
    newest, damaged = None, []
    for checkpoint in reversed(whole):
        fault = resume.damage(checkpoint.path)
        if not fault:
            newest = checkpoint
            break
        _tell(f"{checkpoint.path} is damaged: {fault}")
        damaged.append(checkpoint)
    if whole and newest is None:
        _tell(f"no checkpoint in {saves.folder} is whole, and starting anew would lose them")
        return CONFIG  # every checkpoint is damaged: starting anew would lose them
    from_step = newest.step if newest else -1
    cut = [
        checkpoint for checkpoint in saves.named() if checkpoint not in whole and checkpoint.step > from_step
    ]
    try:
        for checkpoint in (*damaged, *cut):
            _tell(f"set aside: {_set_aside(checkpoint.path)}")
        if newest is not None:
            _point(saves, newest)
    except OSError as error:
        _tell(f"what is damaged cannot be set aside: {error}")
        return CONFIG if damaged else 0
    if newest is not None:
        proof = "verified" if (newest.path / resume.MANIFEST).is_file() else "without a manifest"
        _tell(f"the newest checkpoint is {newest.path.name}, {proof}")
    return 0


@dataclass
class Keeper:
    """Writes manifests and drops old checkpoints; `keep` 0 drops none."""

    saves: Saves
    keep: int = 0
    _unsettled: dict[str, Extent] = field(default_factory=dict)
    _written: dict[str, Extent] = field(default_factory=dict)

    def look(self, *, is_over: bool = False) -> None:
        """One look at everything; `is_over`: nobody writes any more, so nothing needs a second look."""
        whole = self.saves.whole()
        for checkpoint in whole:
            is_newest = checkpoint is whole[-1]
            if is_newest and not (self.saves.last or is_over):
                continue  # nothing says that it is whole but a newer one, or the end
            with contextlib.suppress(FileNotFoundError):  # the trainer drops old ones, too
                self._vouch(checkpoint.path, is_newest=is_newest, is_over=is_over)
        if self.keep:
            retain(self.saves, self.keep)

    def _vouch(self, path: Path, *, is_newest: bool, is_over: bool) -> None:
        if (path / resume.MANIFEST).is_file() and path.name not in self._written:
            return
        extent = _extent(path)
        if self._written.get(path.name) == extent or (path.name in self._written and not is_newest):
            return
        if not is_over and self._unsettled.get(path.name) != extent:
            self._unsettled[path.name] = extent
            return
        resume.write_manifest(path)
        if _extent(path) == extent:
            self._written[path.name] = extent
            _tell(f"manifest of {path.name} written")
        else:
            (path / resume.MANIFEST).unlink()  # it changed while it was read: another look


def retain(saves: Saves, keep: int) -> None:
    """Drop what is older than the newest `keep` that their manifests confirm.

    All that is newer than the oldest of these stays: the last good one does, whatever became of newer ones.
    """
    for leftover in saves.folder.glob(f"{DROPPED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    good = [
        checkpoint
        for checkpoint in saves.whole()
        if (checkpoint.path / resume.MANIFEST).is_file()
        and not resume.damage(checkpoint.path, contents=False)
    ]
    if len(good) <= keep:
        return
    oldest = good[-keep].step
    for checkpoint in saves.named():
        if checkpoint.step < oldest and checkpoint.path.name != saves.pointed():
            going = checkpoint.path.with_name(f"{DROPPED}{checkpoint.path.name}")
            with contextlib.suppress(OSError):  # another user's, or gone
                checkpoint.path.rename(going)
                shutil.rmtree(going, ignore_errors=True)


def watch(keeper: Keeper, parent: int) -> None:
    """Look until the process that started this is gone."""
    while os.getppid() == parent:
        with contextlib.suppress(OSError):  # a disk that stutters; the next look may see it
            keeper.look()
        time.sleep(POLL)


def _set_aside(path: Path) -> Path:
    """Move a checkpoint out of the trainer's sight; nothing is removed."""
    folder = path.parent / DAMAGED
    folder.mkdir(exist_ok=True)
    names = (path.name, *(f"{path.name}.{number}" for number in range(2, 1000)))
    free = next(folder / name for name in names if not (folder / name).exists())
    return path.rename(free)


def _point(saves: Saves, newest: Checkpoint) -> None:
    """Let what names the newest checkpoint name one that is there: the trainer's own file, and links."""
    if saves.pointer and not _is_good(saves, saves.pointed()):
        fresh = saves.folder / f".{saves.pointer}.{os.getpid()}"
        fresh.write_text(newest.path.name, encoding="utf-8")
        fresh.replace(saves.folder / saves.pointer)
        _tell(f"{saves.pointer} names {newest.path.name} now")
    for link in saves.folder.iterdir():
        if link.is_symlink() and not link.exists() and re.fullmatch(saves.name, link.readlink().name):
            link.unlink()
            link.symlink_to(newest.path.name)


def _is_good(saves: Saves, name: str) -> bool:
    return any(checkpoint.path.name == name for checkpoint in saves.whole())


def _extent(folder: Path) -> Extent:
    """What shows whether anything below changes: a manifest of ours is no part of it."""
    paths = sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)
    ours = (path for path in paths if path.name.lstrip(".").startswith(resume.MANIFEST))
    left_out = set(ours)
    return tuple(
        (str(path.relative_to(folder)), status.st_size, status.st_mtime_ns)
        for path in paths
        if path not in left_out
        for status in (path.stat(),)
    )


def _tell(message: str) -> None:
    print(f"hpctrain: {message}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Check, watch, drop the old ones after a failure, or look once at the end."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.keeping", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("check", "watch", "retain", "finish"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", required=True, help="a regular expression of their names")
    parser.add_argument("--last", default="", help="the file of a checkpoint that is written last")
    parser.add_argument("--pointer", default="", help="the file beside them that names the newest")
    parser.add_argument("--keep", type=int, default=0, help="how many stay; 0: all")
    options = parser.parse_args(argv)
    saves = Saves(options.folder, options.name, options.last, options.pointer)
    if options.action == "check":
        return check(saves)
    keeper = Keeper(saves, options.keep)
    if options.action == "watch":
        watch(keeper, os.getppid())
    elif options.action == "retain":
        if options.keep:
            retain(saves, options.keep)
    else:
        keeper.look(is_over=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
