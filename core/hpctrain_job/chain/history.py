"""What the attempts of a chain wrote, as values: the terms in chain.json, and each line of attempts.jsonl."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hpctrain_job.chain import decision
from hpctrain_job.chain.decision import Cause

NUMBERS, LAYOUT = ("total", "time", "links", "avoid"), ("folder", "name", "complete")
"""Keys of the terms, and those of the table in it that says how checkpoints are named."""
PATIENCE = ("idle", "soon")
"""Keys of the terms that runs of earlier versions lack."""
GUARDED = ("nodes", "notice")
"""Keys of the table for guards, where the job has spare nodes."""
MOST = 1 << 50
"""No number of the terms is larger."""


def terms(document: Mapping[str, Any]) -> decision.Terms:
    """What the run asks for, from a document that `are_terms`."""
    guards = document.get("guards", {})
    numbers = {key: document[key] for key in NUMBERS} | {key: guards[key] for key in GUARDED if key in guards}
    patience = {key: document[key] for key in PATIENCE if key in document}
    return decision.Terms(**numbers, **patience, requeue=document.get("requeue") is True)


def event(entry: Mapping[str, Any]) -> decision.Event | None:
    """An event as the judge takes it; None for what is written for people alone, and for a line that is
    damaged: it is left out as one that was torn is."""
    with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError):
        at, step = _seconds(entry.get("at", 0)), entry.get("step")
        if not (step is None or type(step) is int):
            return None
        if entry.get("event") == "began":
            is_inside = entry.get("inside") is True
            return decision.Began(str(entry["job"]), at, step, _names(entry.get("nodes", ())), is_inside)
        if entry.get("event") == "ended":
            until, why = _seconds(entry.get("until", at)), Cause(entry["cause"])
            return decision.Ended(str(entry["job"]), until, why, step, _names(entry.get("lost_nodes", ())))
        return decision.Continued(at) if entry.get("event") == "continued" else None
    return None


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError("no moment")
    return seconds


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))


def are_terms(document: Mapping[str, Any]) -> bool:
    """Whether everything in chain.json is of its type, and names of checkpoints are a pattern."""
    layout = document.get("checkpoints")
    numbers = [document.get(key) for key in (*NUMBERS, "v")] + [document.get(key, 1) for key in PATIENCE]
    if not all(type(number) is int and 0 <= number < MOST for number in numbers):
        return False
    if not (document["time"] and document.get("idle", 1)):
        return False
    guards = document.get("guards", {})
    if not isinstance(guards, dict) or not all(type(guards.get(key, 0)) is int for key in GUARDED):
        return False
    if layout is None:
        return True
    if not (isinstance(layout, dict) and all(isinstance(layout.get(key), str) for key in LAYOUT)):
        return False
    try:
        return "step" in re.compile(layout["name"]).groupindex
    except (re.error, RecursionError, OverflowError):
        return False
