"""`metrics.jsonl` is read whole or line by line with the same result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpctrain_job.metrics import newest, read

ROW = '{"step": 1, "loss": 2.5, "lr": null}'


def lines(tmp_path: Path, *texts: str) -> list[dict[str, object]]:
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(texts) + "\n")
    return read(path)


@pytest.mark.parametrize("torn", ["", "noise", '{"step": 2, "lo', '{"step": 2}, {"step": 3}'])
def test_a_line_that_is_no_row_costs_no_other(tmp_path: Path, torn: str) -> None:
    assert lines(tmp_path, ROW, torn, ROW) == [json.loads(ROW)] * 2


def test_lines_that_are_rows_only_together_are_none(tmp_path: Path) -> None:
    assert lines(tmp_path, ROW, '{"a": [1', '{"step": 2}]}', '{"step": 3}, 4') == [json.loads(ROW)]


def test_what_is_no_number_leaves_its_column(tmp_path: Path) -> None:
    found = lines(
        tmp_path, ROW, '{"step": 2, "loss": NaN, "lr": "x", "mfu": true, "grad_norm": 1e999, "job": "7"}'
    )
    assert found == [json.loads(ROW), {"step": 2, "loss": None, "job": "7"}]
    huge = "1" + "0" * 400
    assert lines(tmp_path, f'{{"step": 3, "tokens": {huge}}}') == [{"step": 3}]


def test_an_evaluation_is_a_row_beside_its_step() -> None:
    rows = [
        {"step": 2, "loss": 1.0},
        {"step": 2, "eval_loss": 3.0},
        {"step": 1, "loss": 2.0},
        {"step": 2, "loss": 0.5},
    ]
    assert newest(rows) == [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 0.5}, {"step": 2, "eval_loss": 3.0}]
