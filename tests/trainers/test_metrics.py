"""Rows are written whole, read back whatever a crash left, and counted once after a resumption."""

from __future__ import annotations

import math
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from hpctrain_job import metrics


def test_a_row_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics.append(path, {"step": 1, "loss": 2.5, "mfu": None})
    assert metrics.read(path) == [{"step": 1, "loss": 2.5, "mfu": None}]
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics.append(path, {"step": 1, "loss": math.nan, "grad_norm": math.inf})
    assert path.read_text() == '{"step": 1, "loss": null, "grad_norm": null}\n'


def test_a_torn_line_and_rubbish_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n[1]\n\xff\xfe\nnot json\n{"step": 2}\n{"step": 3, "lo')
    assert metrics.read(path) == [{"step": 1}, {"step": 2}]
    assert metrics.read(tmp_path / "missing") == []


def test_the_newer_attempt_of_a_step_counts(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"step": 1, "loss": 5},
        {"step": 2, "loss": 4},
        {"step": 2, "eval_loss": 4.5},
        {"step": 2, "loss": 4.1},
        {"step": 3, "loss": 3},
        {"step": "4"},
    ]
    assert metrics.newest(rows) == [rows[0], rows[3], rows[2], rows[4]]


def test_what_a_killed_attempt_trained_beyond_the_next_ones_beginning_is_lost() -> None:
    first = [{"step": step, "loss": 1.0} for step in (10, 20, 30, 40)]
    evaluated = [{"step": 20, "eval_loss": 1.0}, {"step": 40, "eval_loss": 1.0}]
    second = [{"step": 30, "loss": 1.0}, {"step": 20, "eval_loss": 1.0}]
    written = [*first, *evaluated, *second]
    gone = [row for row, is_lost in zip(written, metrics.lost(written), strict=True) if is_lost]
    assert gone == [first[2], first[3], evaluated[1]]
    assert metrics.lost(first) == [False] * 4
    assert metrics.lost([{"step": "x"}, {"loss": 1.0}, {"step": 1, "loss": None}]) == [False] * 3


def _write(path: str, writer: int) -> None:
    for step in range(200):
        metrics.append(path, {"step": step, "writer": writer, "fill": "x" * 500})


def test_writers_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(_write, [os.fspath(path)] * 3, range(3)))
    rows = metrics.read(path)
    assert len(rows) == len(path.read_bytes().splitlines()) == 600
    assert {(row["writer"], row["step"]) for row in rows} == {(w, s) for w in range(3) for s in range(200)}
