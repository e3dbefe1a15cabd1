"""A cluster that speaks PBS holds what the kit asks of anybody's: facts, plans, scripts, hostile words."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.conftest import needs
from tests.e2e.product import installed
from tests.standin_pbs.cluster import write_cluster

KIT = """\
from hpctrain.testing import ClusterConformance


class TestPines(ClusterConformance):
    cluster = "pines"
"""


def test_the_kit_passes(tmp_path: Path) -> None:
    installed()
    there = any(entry.name == "pbs" for entry in entry_points(group="hpctrain.schedulers"))
    needs("installed", there, "hpctrain-plugins was installed before it had pbs (make setup)")
    (tmp_path / "test_pines.py").write_text(KIT)
    site = write_cluster(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "hpctrain.testing.plugin", "test_pines.py"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
