"""`kill -9` at seeded places of every command that changes something: the same command then succeeds, and no
reader meets half a thing. `HPCTRAIN_SOAK`: how many kills of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kills import sweep

KILLS = int(os.environ.get("HPCTRAIN_SOAK", "2"))
SEED = 7


@pytest.mark.parametrize("name", sweep.CASES)
def test_a_kill_leaves_nothing_half_done(name: str, tmp_path: Path) -> None:
    paths = ":".join(str(ROOT / part) for part in ("core", "plugins", ""))
    done = subprocess.run(
        (sys.executable, "-m", sweep.__name__, name, str(SEED), str(KILLS), str(tmp_path)),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": paths},
        cwd=ROOT, capture_output=True, text=True, timeout=120 + 30 * KILLS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["faults"] == []
    assert (told["kills"], told["places"] > 5) == (KILLS, True)
