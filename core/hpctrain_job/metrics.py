"""`metrics.jsonl`: one JSON object a line, the same columns for every trainer."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents

COLUMNS = (
    "time",
    "step",
    "loss",
    "lr",
    "grad_norm",
    "tokens",
    "tokens_per_s",
    "tflops_per_gpu",
    "mfu",
    "hfu",
)
"""What a training row holds; a row of an evaluation holds `time`, `step` and `eval_*`."""

MOST = 1e300
"""No number of a training is larger, and whole numbers beyond that are none for a computer's float."""

Row = Mapping[str, Any]


def append(path: str | os.PathLike[str], row: Row) -> None:
    """Add one row in a single write, so that a reader never meets half of two.

    NaN and infinity become null: JSON has no word for them.
    """
    line = json.dumps({key: _plain(value) for key, value in row.items()}, allow_nan=False)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Every whole row in the order of writing; a missing file is empty, a torn last line is left out."""
    try:
        text = documents.tail(Path(path)).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    lines = [line for line in text.split("\n") if line.startswith("{")]
    return _all_whole(lines) or [row for row in map(parsed, lines) if row is not None]


def lost(written: Sequence[Row]) -> list[bool]:
    """Of each row, in the order of writing, whether it was lost with its attempt.

    A killed attempt has trained beyond its last checkpoint, from which the next one goes on: every step that
    a later row is at or before is trained again.
    """
    marks, later = [False] * len(written), math.inf
    for at in range(len(written) - 1, -1, -1):
        step, is_training = written[at].get("step"), "loss" in written[at]
        if not isinstance(step, int):
            continue
        marks[at] = step >= later if is_training else step > later  # what is evaluated was trained before
        if is_training:
            later = min(later, step)
    return marks


def newest(rows: Iterable[Row]) -> list[Row]:
    """One row for each step and kind, by step: after a resumption the newer attempt's row counts."""
    rows_by_key = {
        (row["step"], _is_eval(tuple(row))): row for row in rows if isinstance(row.get("step"), int)
    }
    return [rows_by_key[key] for key in sorted(rows_by_key)]


def utilisation(tflops: float | None, peak: float, hardware: float = 1.0) -> dict[str, float | None]:
    """`mfu` and `hfu` of one GPU; `hardware` is what recomputation multiplies the work with."""
    share = tflops / peak if tflops and peak else None
    return {
        "mfu": round(share, 4) if share is not None else None,
        "hfu": round(share * hardware, 4) if share is not None else None,
    }


def parsed(line: str) -> dict[str, Any] | None:
    """The row of a line; a column that holds what is no number is left out."""
    if not line.startswith("{"):
        return None
    try:
        return _with_numbers(documents.parse(line))
    except ValueError:
        return None


def _all_whole(lines: list[str]) -> list[dict[str, Any]]:
    """The rows of lines that are all whole, in a third of the time; none where any is not."""
    try:
        rows: list[dict[str, Any]] = documents.parse(f"[{','.join(lines)}]")
    except ValueError:
        return []
    is_a_row_a_line = len(rows) == len(lines) and all(type(row) is dict for row in rows)
    return [_with_numbers(row) for row in rows] if is_a_row_a_line else []


def _with_numbers(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the columns that hold what is no number."""
    if _are_numbers(row.values()):
        return row
    return {key: _plain(value) for key, value in row.items() if not _is_column(key) or _is_number(value)}


_NUMBERS = frozenset({int, float})


def _are_numbers(values: Iterable[object]) -> bool:
    """Whether each is a finite number or None, as in nearly every row: then no column is judged."""
    for value in values:
        if value is None:
            continue
        if type(value) not in _NUMBERS or not -MOST <= value <= MOST:  # type: ignore[operator]
            return False
    return True


def _is_column(name: str) -> bool:
    return name in COLUMNS[1:] or name.startswith("eval_")


def _is_number(value: object) -> bool:
    is_small = isinstance(value, (int, float)) and not isinstance(value, bool) and not abs(value) > MOST
    return value is None or is_small


@lru_cache(maxsize=64)
def _is_eval(names: tuple[str, ...]) -> bool:
    """Whether a row with columns of these names is one of an evaluation; a run has few kinds of rows."""
    return any(name.startswith("eval_") for name in names)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
