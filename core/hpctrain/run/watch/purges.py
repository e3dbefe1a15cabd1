"""What a site will delete of your runs: files that nobody has used for as many days as its purge waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from attrs import frozen

from hpctrain.errors import HpctrainError
from hpctrain.model.cluster import Cluster
from hpctrain.render.shell import plain
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
from hpctrain.run.prepare.bind import bound

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


def purges(cluster: Cluster, account: str, environ: Mapping[str, str]) -> Iterator[Purge]:
    """Folders of the runs in your list that lose a file soon, the first to go first."""
    roots = dict(_roots(cluster, account, environ))
    if not roots:
        return
    found = []
    for entry in Registry.of(environ).entries():
        for role, folder in _folders(entry.run, roots):
            unused_since = _longest_unused(folder)
            days = cluster.storage[role].purge_days
            if unused_since is not None and days and unused_since + days * DAY < time.time() + SOON:
                at = unused_since + days * DAY
                found.append(Purge(run=entry.run, role=role, folder=folder, at=at))
    yield from sorted(found, key=lambda purge: purge.at)


def _roots(cluster: Cluster, account: str, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Where the roles lie that are purged and hold what belongs to a run alone."""
    for role in ("runs", "checkpoints"):
        if role in cluster.storage and cluster.storage[role].purge_days:
            try:
                binding = bound(cluster, account, environ, roles=(role,), on_cluster=True)
                yield role, Path(plain(binding.roots[role], binding))
            except HpctrainError:  # a variable is not set: the questions of storage say so
                continue


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
