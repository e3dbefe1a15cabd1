"""What loading costs, in CPU time of a fresh process on top of its imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.runfile.conftest import DATA, Project

SCRIPT = """
import sys, time
from pathlib import Path
from hpctrain.runfile.facts import load_facts
from hpctrain.runfile.load import structure_run
from hpctrain.runfile.layers.source import read_run
start = time.process_time()
raw = read_run(Path(sys.argv[1]), environ={})
facts = load_facts(Path(sys.argv[2]), settings=raw.settings, user=raw.tiers())
known = {"environment": ["conda", "venv"], "train": ["trl"]}
structure_run(raw, facts.run_tiers, known_names=known)
print(time.process_time() - start)
print("difflib" in sys.modules, "hpctrain.runfile.reading.positions" in sys.modules)
"""


@pytest.mark.budget
def test_structuring(project: Project) -> None:
    project.replace('[train.trl]\nmethod = "lora"\nconfig = "trl.yaml"\n', "")
    project.replace("[environment.venv]\nsystem = true\n", "")  # a warning would look for its line
    (project.path / "cluster.toml").write_text(
        (DATA / "cluster.toml")
        .read_text()
        .replace('[defaults.environment.conda]\nchannel = "conda-forge"', "")
    )
    argv = [sys.executable, "-c", SCRIPT, str(project.path / "run.toml"), str(project.path)]
    best = 1.0
    for _ in range(5):
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        seconds, modules = done.stdout.split("\n", 1)
        assert modules.split() == ["False", "False"]
        best = min(best, float(seconds))
    assert best < 0.025
