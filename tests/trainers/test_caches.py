"""Two runs of one user with the real `datasets`: what the first made of the data serves the second."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs
import pytest

from hpctrain.render import shell
from hpctrain_plugins.trainers import caches
from tests.conftest import ROOT, needs
from tests.trainers import plans

PROGRAM = """
import pathlib
import sys

import datasets


def tokenised(row):
    with open("calls", "a") as file:
        file.write("x")
    return {"tokens": [len(word) for word in row["text"].split()]}


rows = datasets.load_dataset(sys.argv[1], split="train").map(tokenised)
print(sum(map(sum, rows["tokens"])))
"""
ROWS = 50
SUM = ROWS * 9  # three words of three letters


class Runs:
    """Starts the program as two runs would: copies in folders of their own, variables as in a job."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        (folder / "assets/data").mkdir(parents=True)
        lines = '{"text": "one two six"}\n' * ROWS
        (folder / "assets/data/train.jsonl").write_text(lines)

    def start(self, name: str) -> subprocess.Popen[str]:
        run = self.folder / name
        (run / "source").mkdir(parents=True)
        (run / "source/train.py").write_text(PROGRAM)
        binding = attrs.evolve(plans.BINDING, roots={"assets": str(self.folder / "assets")})
        variables = "\n".join(shell.variable(var, binding) for var in caches.ENV)
        lines = "\n".join(shell.line(line, binding) for line in caches.JOB)
        job = "\n".join(f". {ROOT}/core/hpctrain/render/{name}.sh" for name in ("publish", "job"))
        script = f"{job}\n{variables}\n{lines}\ncd source\nexec {self.python} train.py ../../assets/data\n"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "HPC_RUN": str(run),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }
        return subprocess.Popen(
            ["bash", "-euc", script],
            cwd=run,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def sum(self, child: subprocess.Popen[str]) -> int:
        out, err = child.communicate(timeout=300)
        assert child.returncode == 0, err
        return int(out)

    def calls(self, name: str) -> int:
        path = self.folder / name / "source/calls"
        return len(path.read_text()) if path.exists() else 0


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with datasets")
    return Runs(tmp_path, python)


@pytest.mark.torch
def test_the_second_run_makes_no_tokens_again(runs: Runs) -> None:
    assert runs.sum(runs.start("first")) == SUM
    assert runs.sum(runs.start("second")) == SUM
    assert (runs.calls("first"), runs.calls("second")) == (ROWS, 0)
    assert not (runs.folder / "home").exists()


@pytest.mark.torch
def test_two_runs_at_once_have_the_same_rows(runs: Runs) -> None:
    both = [runs.start("first"), runs.start("second")]
    assert [runs.sum(child) for child in both] == [SUM, SUM]
