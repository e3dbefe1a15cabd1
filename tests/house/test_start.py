"""What is imported when the command line starts: help costs nothing, planning never meets torch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT

MAIN = "import sys; from hpctrain.cli import main; sys.exit(main())"
HEAVY = {"attr", "attrs", "cattr", "cattrs", "click", "pluggy", "yaml", "importlib.metadata", "json"}
POISON = ("torch", "transformers", "trl", "peft", "datasets", "numpy", "accelerate")


def hpctrain(*args: str, options: tuple[str, ...] = (), first: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [first, *sys.path]))
    return subprocess.run(
        [sys.executable, *options, "-c", MAIN, *args],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_import_nothing(word: str) -> None:
    done = hpctrain(word, options=("-X", "importtime"))
    assert done.returncode == 0
    assert done.stdout.startswith("hpctrain")
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "hpctrain.cli" in imported
    assert not imported & HEAVY
    assert {name for name in imported if name.startswith("hpctrain")} <= {
        "hpctrain",
        "hpctrain.cli",
        "hpctrain.versions",
    }


@pytest.mark.parametrize("cluster", ["local", "frontier"])
def test_planning_never_imports_what_the_job_has(tmp_path: Path, cluster: str) -> None:
    for name in POISON:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    example = "hpc_frontier/hpc_frontier/examples/lora-2x8.toml"
    done = hpctrain("plan", example, "--on", cluster, "--json", first=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('{"schema": "hpctrain/plan/')
