"""What a site will delete of your runs: files that nobody has used for as many days as its purge waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from attrs import frozen

from hpctrain.errors import HpctrainError
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry

DAY = 86400
SOON = 7 * DAY
"""A purge is named so long before: time for somebody who looks once a week."""
FILES = 10_000
"""So many files of a folder are looked at: a checkpoint has fewer, and a login node is everybody's."""


@frozen(kw_only=True)
class Purge:
    """A folder of a run, and when the first of its files goes."""

    run: RunDirectory
    role: str
    folder: Path
    at: float
    """Seconds since 1970; in the past where the purge is late, or what it took is gone."""


def purges(roots: Mapping[str, Path], days: Mapping[str, int], environ: Mapping[str, str]) -> Iterator[Purge]:
    """Folders of the runs in your list that lose a file soon, the first to go first.

    `roots` are where the roles lie that the site purges after so many `days`.
    """
    soon = []
    for entry in Registry.of(environ).entries():
        for role, folder in _folders(entry.run, roots):
            unused_since = _longest_unused(folder)
            if unused_since is None:
                continue
            at = unused_since + days[role] * DAY
            if at < time.time() + SOON:
                soon.append(Purge(run=entry.run, role=role, folder=folder, at=at))
    yield from sorted(soon, key=lambda purge: purge.at)


def _folders(run: RunDirectory, roots: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    if "runs" in roots and run.path.is_relative_to(roots["runs"]):
        yield "runs", run.path
    if "checkpoints" in roots:
        try:
            yield "checkpoints", roots["checkpoints"] / run.name / run.own_name
        except HpctrainError:  # its name is damaged: `status` says so
            return


def _longest_unused(folder: Path) -> float | None:
    """When the file was read or written that was not for the longest time; None where there is no file."""
    paths = (Path(at, name) for at, _, names in os.walk(folder) for name in names)
    times = []
    for path in islice(paths, FILES):
        try:
            status = path.lstat()
        except OSError:  # deleted while we look
            continue
        times.append(max(status.st_atime, status.st_mtime))
    return min(times, default=None)
