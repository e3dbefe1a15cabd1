"""The verdicts of a step on the disk: every one that was given and every one that was taken back."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents
from hpctrain_job.hangs.evidence import Kind, Verdict

FILE = "hangs.jsonl"
ENDED = "hung"
"""The file by which a watch tells the others, and job.sh, that the step is to end."""


@dataclass(frozen=True)
class Written:
    """A verdict as it was written."""

    at: float
    job: str
    kind: str
    words: str
    """In words, with the names."""
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    node_ranks: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()
    holds: bool = True
    """False: something moves again."""
    ends: bool = False
    """Whether the step was ended for it."""


def sentence(verdict: Verdict) -> str:
    """`rank 3 on nid0004 hangs: it does nothing while others wait for it`."""
    if not verdict.ranks:
        return f"the training hangs: {verdict.kind.value}"
    numbers = ", ".join(map(str, verdict.ranks[:8])) + (", ..." if len(verdict.ranks) > 8 else "")
    ranks = f"rank {numbers} on" if len(verdict.ranks) == 1 else f"ranks {numbers} on"
    return f"{ranks} {', '.join(verdict.nodes[:4])} hangs: {verdict.kind.value}".replace(
        " hangs", " hang" if len(verdict.ranks) > 1 else " hangs", 1
    )


def write(step: Path, job: str, verdict: Verdict, *, holds: bool = True, ends: bool = False) -> None:
    """Add one line: a reader sees all of it or nothing."""
    document = {
        "v": 1,
        "at": round(time.time(), 1),
        "job": job,
        "kind": verdict.kind.name.lower(),
        "words": sentence(verdict),
        "ranks": verdict.ranks,
        "nodes": verdict.nodes,
        "node_ranks": verdict.node_ranks,
        "evidence": verdict.evidence,
        "holds": holds,
        "ends": ends,
    }
    _append(step, document)


def _append(step: Path, document: Mapping[str, Any]) -> None:
    descriptor = os.open(step / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(document).encode() + b"\n")
    finally:
        os.close(descriptor)


def take_back(step: Path, job: str) -> None:
    """The job's last verdict holds no longer: its ranks were begun anew."""
    last = newest(step, job)
    if last is not None:
        _append(step, {"v": 1, **asdict(last), "at": round(time.time(), 1), "holds": False})


def newest(step: Path, job: str = "") -> Written | None:
    """The last verdict of a step, or of one of its jobs, while it holds."""
    try:
        lines = documents.tail(step / FILE).split(b"\n")[:-1]
    except OSError:
        return None
    for line in reversed(lines):
        with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError):
            written = _written(documents.parse(line))
            if not job or written.job == job:
                return written if written.holds else None
    return None


def blamed(step: Path, job: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes of the ranks that were named, as the scheduler calls them where its `nodes` are known."""
    written = newest(step, job)
    if written is None:
        return ()
    if not nodes:
        return written.nodes
    return tuple(nodes[number] for number in written.node_ranks if 0 <= number < len(nodes))


def _written(document: Any) -> Written:
    kind = str(document["kind"])
    if kind.upper() not in Kind.__members__:
        raise ValueError("a kind of another version")
    return Written(
        at=float(document["at"]),
        job=str(document["job"]),
        kind=kind,
        words=str(document["words"]),
        ranks=tuple(map(int, document["ranks"])),
        nodes=tuple(map(str, document["nodes"])),
        node_ranks=tuple(map(int, document["node_ranks"])),
        evidence=tuple(map(str, document["evidence"])),
        holds=bool(document["holds"]),
        ends=bool(document["ends"]),
    )
