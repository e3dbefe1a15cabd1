"""Interpreters with a trainer's own code, where this machine has one.

Automodel comes from the index with `make setup`. nanotron and GPT-NeoX are in no index in a form that works
(the wheel of nanotron 0.4 cannot be imported, NeoX has none): clone their CHECKOUT, then name an interpreter
with torch and the trainer's stack in HPCTRAIN_NEOX_PYTHON and the clone in HPCTRAIN_NEOX_PATH (nanotron: its
folder `src`).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.house.sources import ROOT
from tests.patience import PATIENCE

LIMIT = 200 * PATIENCE


def python_of(trainer: str) -> str:
    """An interpreter that imports the trainer, or a skip; a machine that must have Automodel fails."""
    variable = f"HPCTRAIN_{trainer.upper()}_PYTHON"
    found, why = os.environ.get(variable, ""), f"{variable} names no interpreter that can import {trainer}"
    if trainer == "automodel":
        needs("torch", bool(found), why)
    elif not found:
        pytest.skip(why)
    return found


def run(trainer: str, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The interpreter with the trainer's code and our tests on its path."""
    path = (str(ROOT), str(ROOT / "core"), os.environ.get(f"HPCTRAIN_{trainer.upper()}_PATH", ""))
    return subprocess.run(
        [python_of(trainer), "-W", "ignore", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "DS_ACCELERATOR": "cpu"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
