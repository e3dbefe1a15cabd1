"""`metrics.jsonl`: one JSON object a line, the same columns for every trainer."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpctrain_job import documents

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
    return [row for row in map(parsed, text.split("\n")) if row is not None]


def newest(rows: Iterable[Row]) -> list[Row]:
    """One row for each step and kind, by step: after a resumption the newer attempt's row counts."""
    rows_by_key = {(row["step"], _is_eval(row)): row for row in rows if isinstance(row.get("step"), int)}
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
        row = documents.parse(line)
    except ValueError:
        return None
    return {key: _plain(value) for key, value in row.items() if not _is_column(key) or _is_number(value)}


def _is_column(name: str) -> bool:
    return name in COLUMNS[1:] or name.startswith("eval_")


def _is_number(value: object) -> bool:
    is_small = isinstance(value, (int, float)) and not isinstance(value, bool) and not abs(value) > MOST
    return value is None or is_small


def _is_eval(row: Row) -> bool:
    return any(key.startswith("eval_") for key in row)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
