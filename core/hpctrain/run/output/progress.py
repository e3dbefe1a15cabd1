"""Metrics that a trainer only prints, found in the log of rank 0 by the patterns of the plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hpctrain.model.train import Pattern
from hpctrain.plan.chain import TRAIN
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.kept_plan import KeptPlan
from hpctrain_job.files import documents

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(
    r"(?P<digits>[-+]?[\d.]+(?:e[-+]?\d+)?|nan|[-+]?inf)(?P<size>[KMBTPE]?)\Z", re.IGNORECASE
)
_SIZES = {"": 1.0, **{letter: 1000.0 ** (n + 1) for n, letter in enumerate("KMBTPE")}}


def printed(run: RunDirectory, plan: KeptPlan) -> list[dict[str, Any]]:
    """Every row that the run's log shows, with columns of `metrics.jsonl`."""
    return list(from_log(_log(run), plan.train.progress))


def from_log(text: str, patterns: Iterable[Pattern]) -> Iterator[dict[str, Any]]:
    """A row for each place of a log that a pattern fits, in the order of the patterns."""
    plain = _ESCAPE.sub("", text)
    for pattern in patterns:
        for match in re.finditer(pattern.regex, plain):
            row = {
                name: value * pattern.scale.get(name, 1.0)
                for name, raw in match.groupdict().items()
                if (value := number(raw)) is not None
            }
            if "step" in row:
                yield {**row, "step": int(row["step"])}


def number(text: str | None) -> float | None:
    """A number as logs print it: `53.3K` is 53300; None for what is none, and for NaN."""
    match = _NUMBER.match(text.rstrip(",;")) if text else None
    if match is None:
        return None
    try:
        value = float(match["digits"]) * _SIZES[match["size"].upper()]
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def _log(run: RunDirectory) -> str:
    """The log of rank 0; where ranks share one, the job's."""
    for path in (run.log(TRAIN, 0), run.log(TRAIN)):
        if path.is_file():
            return documents.tail(path).decode("utf-8", "replace")
    return ""
