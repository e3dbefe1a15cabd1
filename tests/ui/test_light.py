"""The ui stays light: a plan pays for it at every start."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = "from hpctrain.ui import plot, problem, table, term, text"
HEAVY = ("attr", "cattrs", "click", "yaml", "pluggy", "dataclasses", "textwrap", "json", "inspect")


def run(code: str, cache: Path | None = None) -> str:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if cache is not None:
        environ["PYTHONPYCACHEPREFIX"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environ,
    )
    return done.stdout


@pytest.mark.parametrize("module", ["text", "term", "series", "table", "plot", "problem"])
def test_nothing_heavy_is_imported(module: str) -> None:
    loaded = run(f"import hpctrain.ui.{module}, sys; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)
    ours = {name for name in loaded if name.startswith("hpctrain")}
    assert all(name in ("hpctrain", "hpctrain.ui") or "hpctrain.ui." in name for name in ours)


def cpu(code: str, cache: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(code, cache)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.budget
def test_importing_all_that_a_plan_prints_with_costs_half_a_bare_python(tmp_path: Path) -> None:
    bare, ours = [], []
    run(MODULES, tmp_path)  # an installed package has its byte code
    for _ in range(15):
        bare.append(cpu("import hpctrain, typing", tmp_path))  # every command has typing, by click
        ours.append(cpu(MODULES, tmp_path))
    assert min(ours) - min(bare) <= min(bare) / 2
