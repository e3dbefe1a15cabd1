"""Where jobs stand among all that wait in their partition, where Slurm shows the jobs of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from hpctrain.plugin import JobState, NotReachable, State

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

SECONDS = 60.0
ANY = range(-64, 256)
BEHIND = "Priority"
IN_LINE = ("Resources", BEHIND)
"""The reasons of jobs that wait for nodes alone: the first of a partition has the first, all others the
second. https://slurm.schedmd.com/job_reason_codes.html"""
SEPARATOR = "\x1f"
FIELDS = ("JobID", "Reason", "Partition")
PARTITION = "--partition="


def placed(jobs: list[JobState], tools: ProgramRunner) -> list[JobState]:
    """The jobs with their positions; nobody is asked while none of them waits for nodes."""
    if not any(_is_in_line(job) for job in jobs):
        return jobs
    line = _line(sorted({p for job in jobs if _is_in_line(job) for p in _partitions(job)}), tools)
    return [attrs.evolve(job, position=_position(job, line)) if _is_in_line(job) else job for job in jobs]


def _line(partitions: Sequence[str], tools: ProgramRunner) -> list[tuple[str, str, list[str]]]:
    """All that wait for nodes there, highest priority first: id, reason, partitions; [] without an answer."""
    form = ",".join(f"{field}:{SEPARATOR}" for field in FIELDS)
    argv = ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", f"--Format={form}")
    try:
        done = tools.run((*argv, PARTITION + ",".join(partitions)), timeout=SECONDS, ok=ANY)
    except NotReachable:
        return []
    rows = [[part.strip() for part in line.split(SEPARATOR)] for line in done.out.splitlines()]
    whole = [row[: len(FIELDS)] for row in rows if len(row) in (len(FIELDS), len(FIELDS) + 1)]
    return [(ident, reason, names.split(",")) for ident, reason, names in whole if reason in IN_LINE]


def _position(job: JobState, line: Sequence[tuple[str, str, list[str]]]) -> int | None:
    """From 1; None where the first that we may see waits behind another: the site hides jobs of others."""
    partitions = _partitions(job)
    ahead = [(ident, reason) for ident, reason, names in line if not set(names).isdisjoint(partitions)]
    if not ahead or ahead[0][1] == BEHIND:
        return None
    return next((at for at, (ident, _) in enumerate(ahead, 1) if ident == job.id), None)


def _is_in_line(job: JobState) -> bool:
    return job.state is State.QUEUED and job.reason.endswith(tuple(f"({word})" for word in IN_LINE))


def _partitions(job: JobState) -> list[str]:
    return [
        name
        for word in job.queue_options
        if word.startswith(PARTITION)
        for name in word.removeprefix(PARTITION).split(",")
        if name
    ]
