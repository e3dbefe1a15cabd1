"""The budgets that can be counted: what a shared file system has to answer, and what is imported, before any
work begins. CPU time has its budgets in `python -m bench`: a test with a clock fails where others work."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.budgets.conftest import CROWD, EXAMPLE
from tests.budgets.measure import calls, modules
from tests.budgets.small import small_site
from tests.conftest import needs
from tests.packaging.environment import Environment
from tests.packaging.places import CLUSTERS

HELP_CALLS, PLAN_CALLS, CALLS_PER_STRANGER = 700, 2100, 4
"""An import costs six. Lists of images and chains of jobs took the largest plan from 1,988
to 2,053, where 2,000 was the aim."""
HELP_MODULES, PLAN_MODULES, SUBMIT_MODULES = 40, 290, 378
"""Measured on Python 3.11: 29, 274 and 375 (376 on Debian's), of which 100 are Python's own, and five the
folders of run/, which were not there when 375 was the limit."""
READY = ("--set", 'environment.use="ready"', "--set", 'environment.ready.prefix="/env"')


def _commands(installed: Environment) -> dict[str, tuple[str, ...]]:
    program = str(installed.bin / "hpctrain")
    return {
        "help": (program, "--help"),
        "version": (program, "--version"),
        "plan": (program, "plan", str(EXAMPLE), *READY),
        "built": (program, "plan", str(EXAMPLE)),
    }


def test_modules(installed: Environment, tmp_path: Path) -> None:
    found = {name: modules(argv, installed.env) for name, argv in _commands(installed).items()}
    submit = (str(installed.bin / "hpctrain"), "submit", str(tmp_path / "run.toml"))
    found["submit"] = modules(submit, small_site(tmp_path).env)
    print(found)
    limits = {"help": HELP_MODULES, "version": HELP_MODULES, "submit": SUBMIT_MODULES}
    assert {name: count for name, count in found.items() if count > limits.get(name, PLAN_MODULES)} == {}


def test_calls_to_the_file_system(installed: Environment, tmp_path: Path) -> None:
    needs("strace", shutil.which("strace") is not None, "strace is not installed")
    commands = _commands(installed)
    others = [name for name in CLUSTERS if name != "frontier"]
    commands |= {name: (*commands["built"], "--on", name) for name in others}
    found = {name: calls(argv, installed.env, tmp_path / name) for name, argv in commands.items()}
    print(found)
    assert found["help"] <= HELP_CALLS
    assert found["version"] <= HELP_CALLS
    assert {name: found[name] for name in ("plan", "built", *others) if found[name] > PLAN_CALLS} == {}


def test_a_crowd_of_distributions_costs_little(
    installed: Environment, crowd: Mapping[str, str], tmp_path: Path
) -> None:
    needs("strace", shutil.which("strace") is not None, "strace is not installed")
    commands = _commands(installed)
    crowded = {**installed.env, **crowd}
    more = {
        name: (calls(argv, crowded, tmp_path / "among") - calls(argv, installed.env, tmp_path / "alone"))
        / CROWD
        for name, argv in commands.items()
    }
    print(more)
    assert {name: count for name, count in more.items() if count > CALLS_PER_STRANGER} == {}
