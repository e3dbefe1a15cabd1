"""What torch's flight recorder tells of one rank: the first operation that is not complete, and in which
order operations follow each other. Stack traces are never asked for: in a rank that hangs, finding their
symbols took 16 s.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpctrain_job.hangs.evidence import Operation

NAMES = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
"""By which torch gives the recorder away: the newer one serves every backend, the older one NCCL."""
NEWEST = 300
"""Entries that are looked at; the recorder holds 2,000."""
MOST_ORDERS = 100


@dataclass(frozen=True)
class Recording:
    """One rank's operations."""

    pending: Operation | None = None
    order: str = ""
    orders: frozenset[str] = frozenset()


def reader(bindings: Any) -> Callable[[], str | bytes] | None:
    """What reads the recorder, where this torch has one; `bindings` are those of its C++ part."""
    return next((getattr(bindings, name) for name in NAMES if hasattr(bindings, name)), None)


def recording(dump: str | bytes, groups: Mapping[str, str], shapes: Mapping[str, str]) -> Recording | None:
    """What a dump says; None where it holds nothing. `groups` are our names of torch's groups."""
    entries = [entry for entry in json.loads(dump).get("entries", ()) if not entry.get("is_p2p")]
    entries = sorted(entries, key=lambda entry: int(entry["record_id"]))[-NEWEST:]
    if not entries:
        return None
    first = next((n for n, entry in enumerate(entries) if not _is_complete(entry)), None)
    names = [_shape(entry, groups, shapes) for entry in entries]
    complete = names if first is None else names[:first]
    orders = dict.fromkeys(f"{before} > {after}" for before, after in itertools.pairwise(complete))
    if first is None:
        return Recording(orders=frozenset(list(orders)[:MOST_ORDERS]))
    return Recording(
        pending=_operation(entries[first], groups),
        order=f"{names[first - 1]} > {names[first]}" if first else "",
        orders=frozenset(list(orders)[:MOST_ORDERS]),
    )


def _operation(entry: Mapping[str, Any], groups: Mapping[str, str]) -> Operation:
    sizes: Sequence[Sequence[int]] = entry.get("input_sizes") or ()
    size = " ".join("x".join(map(str, size)) for size in sizes)[:80]
    name = entry["process_group"][0]
    return Operation(
        groups.get(name, name), int(entry["collective_seq_id"]), str(entry["profiling_name"])[:80], size
    )


def _is_complete(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("retired")) or entry.get("state") == "completed"


def _shape(entry: Mapping[str, Any], groups: Mapping[str, str], shapes: Mapping[str, str]) -> str:
    name = entry["process_group"][0]
    return f"{shapes.get(groups.get(name, name), '')} {entry['profiling_name']}"
