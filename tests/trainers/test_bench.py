"""The benchmark runs from end to end, at a size that a processor bears."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.trainers.conftest import LIMIT, ROOT, surroundings

pytestmark = pytest.mark.torch


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sft", "lora"])
def test_both_sides_are_measured(method: str, torch_python: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [torch_python, str(ROOT / "bench/train.py"), "tiny", method, "4"],
        env={**surroundings(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    table = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [line.split(",")[0] for line in table[1:]] == ["| hpctrain", "| a plain TRL script"]
    rates = [float(line.split(" | ")[1].replace(",", "")) for line in table[1:]]
    assert all(rate > 0 for rate in rates)
