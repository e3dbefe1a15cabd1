"""The checkpoints of a run: steps, sizes, whether they are whole, and what was made of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from attrs import frozen

from hpctrain.run.live import LiveRun
from hpctrain_job import resume

WHOLE, VERIFIED = "whole", "verified"
"""All files are there, by their sizes or, without a manifest, by the file that is written last; or every byte
is as it was written."""


@frozen(kw_only=True)
class SavedCheckpoint:
    """One checkpoint on the disk."""

    step: int
    """After which it was taken."""
    path: Path
    size: int
    """Bytes of all its files."""
    time: float
    """When it was last written to; seconds since 1970."""
    state: str
    """WHOLE, VERIFIED, or in words why it cannot be gone on from."""
    has_manifest: bool
    exports: tuple[Path, ...] = ()
    """Conversions of it, each in the folder of its format."""

    @property
    def is_whole(self) -> bool:
        """Whether the training could go on from it."""
        return self.state in (WHOLE, VERIFIED)

    @property
    def state_words(self) -> str:
        """`whole`, `verified`, `whole, no manifest`, or what is wrong."""
        return f"{self.state}, no manifest" if self.is_whole and not self.has_manifest else self.state


def checkpoints_of(live: LiveRun, *, verify: bool = False) -> list[SavedCheckpoint]:
    """The run's checkpoints, oldest first; with `verify` every byte that a manifest names is read."""
    layout, folder = live.directory.layout, live.checkpoints()
    if layout is None or folder is None or not folder.is_dir():
        return []
    home = folder
    for _ in PurePath(layout.folder).parts:
        home = home.parent
    pattern = re.compile(layout.name)
    checkpoints = []
    for entry in folder.iterdir():
        match = pattern.fullmatch(entry.name)
        if match and entry.is_dir():
            size, time = _extent(entry)
            has_manifest = (entry / resume.MANIFEST).is_file()
            checkpoints.append(
                SavedCheckpoint(
                    step=int(match["step"]),
                    path=entry,
                    size=size,
                    time=time,
                    state=_state(entry, layout.complete, verify and has_manifest),
                    has_manifest=has_manifest,
                    exports=tuple(_exports(home, entry)),
                )
            )
    return sorted(checkpoints, key=lambda checkpoint: checkpoint.step)


def _state(folder: Path, last: str, verify: bool) -> str:
    if last and not (folder / last).is_file():
        return f"not whole: {last}, which is written last, is missing"
    fault = resume.damage(folder, contents=verify)
    return f"damaged: {fault}" if fault else VERIFIED if verify else WHOLE


def _exports(home: Path, checkpoint: Path) -> Iterator[Path]:
    """The step `export` and `convert` write FORMAT/NAME beside the trainer's own folder, whole or not."""
    for entry in sorted(home.iterdir()):
        converted = entry / checkpoint.name
        if entry.name[:1] != "." and converted != checkpoint and converted.is_dir():
            yield converted


def _extent(folder: Path) -> tuple[int, float]:
    """Bytes of all files below, and when the newest was written; one that vanishes meanwhile is none."""
    size, newest = 0, 0.0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(path, name).lstat()
            except FileNotFoundError:
                continue
            size += status.st_size
            newest = max(newest, status.st_mtime)
    return size, newest
