"""Scripts that another computer wrote look for a Python of the machine where they run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain.render.tree import helper

OLD = "#!/bin/sh\nexit 1\n"
"""A Python of the system that is older than 3.10, as far as the question goes."""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The only folder in PATH: bash's helpers, and a python3 that is too old."""
    (tmp_path / "job.sh").write_text(helper("job.sh"))
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "python3", OLD)
    program(folder, "hostname", "#!/bin/sh\necho node1\n")
    return folder


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def python_of(folder: Path, *lines: str) -> str:
    script = "\n".join(["set -euo pipefail", ". ./job.sh", *lines, 'echo "$HPC_PYTHON: $hpc_lacks"'])
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=folder.parent,
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_one_that_is_new_enough_is_taken_whatever_its_name(machine: Path) -> None:
    program(machine, "python3.12", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert python_of(machine, "hpc_python") == "python3.12:"


def test_where_there_is_none_the_log_says_so(machine: Path) -> None:
    assert python_of(machine, "hpc_python") == "python3: no Python from 3.10 on is in PATH on node1"


def test_a_module_may_bring_one(machine: Path) -> None:
    program(machine.parent, "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    lines = ('module() { PATH="$PWD:$PATH"; }', "hpc_python", "hpc_module load python")
    assert python_of(machine, *lines) == "python3:"
