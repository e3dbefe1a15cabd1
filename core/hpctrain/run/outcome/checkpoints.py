"""What a training saved: checkpoints with step, size and whether they are whole; what was exported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from attrs import frozen

from hpctrain.run.disk.kept_plan import KeptPlan
from hpctrain.run.live import LiveRun
from hpctrain_job import resume

WHOLE, VERIFIED = "whole", "verified"
"""All files are there, by their sizes or, without a manifest, by the file that is written last; or every byte
is as it was written."""


@frozen(kw_only=True)
class SavedCheckpoint:
    """One checkpoint on the disk; its files are looked at when somebody asks."""

    step: int
    """After which it was taken."""
    path: Path
    last: str
    """The file that is written last; empty where the trainer names none."""
    home: Path
    """The folder of the run's checkpoints, in which each format has its own."""
    verify: bool
    """Whether every byte that its manifest names is read to judge it."""

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return self._extent[0]

    @property
    def time(self) -> float:
        """When it was last written to; seconds since 1970."""
        return self._extent[1]

    @property
    def has_manifest(self) -> bool:
        return (self.path / resume.MANIFEST).is_file()

    @cached_property
    def state(self) -> str:
        """WHOLE, VERIFIED, or in words why it cannot be gone on from."""
        if self.last and not (self.path / self.last).is_file():
            return f"not whole: {self.last}, which is written last, is missing"
        verify = self.verify and self.has_manifest
        fault = resume.damage(self.path, contents=verify)
        return f"damaged: {fault}" if fault else VERIFIED if verify else WHOLE

    @property
    def is_whole(self) -> bool:
        """Whether the training could go on from it."""
        return self.state in (WHOLE, VERIFIED)

    @property
    def state_words(self) -> str:
        """`whole`, `verified`, `whole, no manifest`, or what is wrong."""
        return f"{self.state}, no manifest" if self.is_whole and not self.has_manifest else self.state

    @property
    def exports(self) -> tuple[Path, ...]:
        """Conversions of it, each in the folder of its format, whole or not: `export` and `convert` write
        FORMAT/NAME beside the trainer's own folder."""
        converted = (entry / self.path.name for entry in sorted(self.home.iterdir()) if entry.name[:1] != ".")
        return tuple(path for path in converted if path != self.path and path.is_dir())

    @cached_property
    def _extent(self) -> tuple[int, float]:
        """Bytes of all files below, and when the newest was written; one that vanishes meanwhile is none."""
        size, newest = 0, 0.0
        for path, _, names in os.walk(self.path):
            for name in names:
                try:
                    status = Path(path, name).lstat()
                except FileNotFoundError:
                    continue
                size += status.st_size
                newest = max(newest, status.st_mtime)
        return size, newest


@frozen(kw_only=True)
class Saved:
    """What a training left so far."""

    folder: Path
    """Where the trainer saves."""
    checkpoints: tuple[SavedCheckpoint, ...]
    """Oldest first, whole or not."""
    exported: Path | None
    """The newest checkpoint in the format of `[checkpoint] export`."""

    @property
    def damaged(self) -> list[Path]:
        """Those that a job set aside, because they are not what was written."""
        return sorted((self.folder / resume.DAMAGED).glob("*"))

    @property
    def newest(self) -> SavedCheckpoint | None:
        """The newest that is whole."""
        return next((checkpoint for checkpoint in reversed(self.checkpoints) if checkpoint.is_whole), None)


def saved(live: LiveRun, *, verify: bool = False) -> Saved | None:
    """What is there now; None where the trainer does not say how it saves, or has not begun to."""
    layout, folder = live.directory.layout, live.checkpoints()
    if layout is None or folder is None or not folder.is_dir():
        return None
    depth = len(Path(layout.folder).parts)
    home = folder.parents[depth - 1] if depth else folder
    target = KeptPlan.of(live.directory.plan).run.checkpoint.export
    exports = resume.complete(home / target, layout.name, "") if target else []
    return Saved(
        folder=folder,
        checkpoints=tuple(
            SavedCheckpoint(step=step, path=path, last=layout.complete, home=home, verify=verify)
            for step, path in sorted(_named(folder, layout.name))
        ),
        exported=exports[-1].path if exports else None,
    )


def _named(folder: Path, name: str) -> Iterator[tuple[int, Path]]:
    """The folders whose name is that of a checkpoint, with their steps."""
    pattern = re.compile(name)
    for entry in folder.iterdir():
        match = pattern.fullmatch(entry.name)
        if match and entry.is_dir():
            yield int(match["step"]), entry
