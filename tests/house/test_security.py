"""SECURITY.md names the test of each promise, and the list of holes that of each hole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["SECURITY.md", "tests/hostile/README.md"])
def test_each_promise_and_each_hole_has_a_test(page: str) -> None:
    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(tests/[^`:]+)(?:::(test_\w+))?`", row.rsplit("|", 2)[1])
        assert named, row
        assert all(has_test(ROOT / file, function) for file, function in named), row


def has_test(file: Path, function: str) -> bool:
    """Whether the file has a test of this name, or any where none is named."""
    defined = re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE) if file.is_file() else []
    return function in defined if function else bool(defined)


def test_a_test_that_is_gone_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "test_x.py"
    file.write_text("def test_a() -> None: ...\n")
    assert has_test(file, "")
    assert has_test(file, "test_a")
    assert not has_test(file, "test_b")
    assert not has_test(tmp_path / "test_y.py", "")
