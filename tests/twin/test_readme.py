"""README.md says of each twin what its overlay says, and names every fault."""

from __future__ import annotations

from pathlib import Path

from tests.twin.faults import FAULTS
from tests.twin.honest import table

README = (Path(__file__).parent / "README.md").read_text()


def test_the_table_is_that_of_the_overlays() -> None:
    assert table() in README


def test_every_fault_is_named() -> None:
    for name, function in FAULTS.items():
        assert f"- `{name}`: {(function.__doc__ or '').strip()}" in README
