"""What /proc says of a process, and what several looks at it mean. A user may read this of own processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpctrain_job.hangs.evidence import Doing

PROC = Path("/proc")
SHARE = 0.05
"""From this share of a processor on, a process computes: threads of libraries that only look use less."""
RUNNABLE = 0.3
"""On a machine with too few processors a process that computes gets little, but is often seen to want one."""
BYTES = 200_000
"""Bytes a second from which on a process reads or writes; its pulse writes up to 60,000."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """One look at a process."""

    at: float
    state: str = "S"
    cpu: float = 0.0
    """Seconds that it has used."""
    moved: int = 0
    """Bytes that it has read and written."""
    children_cpu: float = 0.0
    children_moved: int = 0
    kernel: str = ""
    """The function of the kernel in which it sleeps."""


def born(pid: int) -> str:
    """When a process began: tells it from a later one with its number. Empty where there is none."""
    fields = _fields(PROC / str(pid))
    return fields[19] if fields else ""


def sample(pid: int, at: float) -> Sample | None:
    """A process now; None where it is gone, or a corpse."""
    folder = PROC / str(pid)
    fields = _fields(folder)
    if not fields or fields[0] in ("Z", "X"):
        return None
    children = list(_children(folder))
    return Sample(
        at=at,
        state=fields[0],
        cpu=_cpu(fields),
        moved=_moved(folder),
        children_cpu=sum(_cpu(_fields(child)) for child in children),
        children_moved=sum(_moved(child) for child in children),
        kernel=_text(folder / "wchan").strip("0\n"),
    )


def doing(samples: Sequence[Sample]) -> Doing:
    """What a process did between the first and the last look at it."""
    first, last = samples[0], samples[-1]
    if last.state in ("T", "t"):
        return Doing.STOPPED
    seconds = last.at - first.at
    if seconds <= 0:
        return Doing.UNKNOWN
    if last.children_cpu - first.children_cpu > SHARE * seconds:
        return Doing.CHILD
    if max(last.moved - first.moved, last.children_moved - first.children_moved) > BYTES * seconds:
        return Doing.MOVING
    runnable = sum(look.state == "R" for look in samples) / len(samples)
    return Doing.BUSY if last.cpu - first.cpu > SHARE * seconds or runnable > RUNNABLE else Doing.IDLE


def _children(folder: Path) -> Iterator[Path]:
    """All that descend from a process."""
    for path in folder.glob("task/*/children"):
        for pid in _text(path).split():
            child = PROC / pid
            yield child
            yield from _children(child)


def _fields(folder: Path) -> list[str]:
    """Those of `stat` from the state on: what stands before is a name that may hold anything."""
    return _text(folder / "stat").rpartition(") ")[2].split()


def _cpu(fields: Sequence[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / _TICKS if len(fields) > 12 else 0.0


def _moved(folder: Path) -> int:
    counts = dict(line.split(": ") for line in _text(folder / "io").splitlines() if ": " in line)
    return int(counts.get("rchar", 0)) + int(counts.get("wchar", 0))


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
