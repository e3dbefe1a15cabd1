"""SECURITY.md names the test of each promise."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_promise_has_a_test() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    for row in rows:
        tests = re.findall(r"`(tests/[^`]+)`", row.rsplit("|", 2)[1])
        assert tests, row
        assert all((ROOT / test).is_file() for test in tests), row
