"""What the watches of a job write for each other in the run's folder: a page for each node.

Once a minute while all is well, so that a node that dies is missed; every few seconds while nothing moves.
How old a page is, the times of the file server tell, the same for all: the clocks of nodes differ.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents
from hpctrain_job.hangs import groups
from hpctrain_job.hangs.evidence import Doing, Look, Operation, Rank


def write(folder: Path, node_rank: int, still: float, ranks: list[Rank], members: dict[str, str]) -> Path:
    """A node's page, whole or not there."""
    folder.mkdir(mode=0o700, exist_ok=True)
    rows = [{**asdict(rank), "doing": rank.doing.name, "orders": sorted(rank.orders)} for rank in ranks]
    path = folder / f"{node_rank}.json"
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(
        json.dumps({"v": 1, "still": still, "members": members, "ranks": rows}), encoding="utf-8"
    )
    fresh.replace(path)
    return path


def read(folder: Path, own_page: Path, silent: float) -> Look:
    """All pages as one look at the training; a node's that is older than `silent` says that the node is."""
    now = own_page.stat().st_mtime
    ranks: list[Rank] = []
    members: dict[str, tuple[int, ...]] = {}
    stills: list[float] = []
    for path, document in _pages(folder):
        # cut off by a full disk
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            age = max(0.0, now - path.stat().st_mtime)
            page = [_rank(row) for row in document["ranks"]]
            still = float(document["still"]) + age
            members |= {group: groups.unpack(packed) for group, packed in document["members"].items()}
            ranks += [replace(rank, doing=Doing.SILENT) for rank in page] if age > silent else page
            stills += [still] if age <= silent else []
    return Look(min(stills, default=0.0), tuple(sorted(ranks, key=lambda rank: rank.rank)), members)


def _pages(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in folder.glob("[0-9]*.json"):
        with contextlib.suppress(OSError, ValueError):
            yield path, documents.read(path)


def _rank(row: dict[str, Any]) -> Rank:
    pending = row["pending"]
    return Rank(
        **{
            **row,
            "rank": int(row["rank"]),
            "node": str(row["node"]),
            "numbers": {str(group): int(number) for group, number in row["numbers"].items()},
            "pending": Operation(**pending) if pending else None,
            "orders": frozenset(map(str, row["orders"])),
            "stack": tuple(map(str, row["stack"])),
            "doing": Doing[row["doing"]],
        }
    )
