"""Where the workspace's distributions lie, and which Pythons `make setup` found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / ".cache/wheels"
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
CLUSTERS = ("alps", "frontier", "isambard", "leonardo", "olivia")
MEMBERS = {
    "hpctrain": ROOT,
    "hpctrain_plugins": ROOT / "plugins",
    **{f"hpctrain_{name}": ROOT / f"hpc_{name}" for name in CLUSTERS},
}


def pyproject(member: str) -> dict[str, Any]:
    """The whole pyproject.toml of a member."""
    return tomllib.loads((MEMBERS[member] / "pyproject.toml").read_text(encoding="utf-8"))


def project(member: str) -> dict[str, Any]:
    """The `[project]` table of a member."""
    table: dict[str, Any] = pyproject(member)["project"]
    return table


def pythons() -> dict[str, str]:
    """Version -> interpreter, as `make setup` found them; else only the one that runs the tests."""
    try:
        lines = (ROOT / ".cache/pythons.txt").read_text().splitlines()
    except FileNotFoundError:
        return {OWN: sys.executable}
    return {version: python for version, _, python in (line.partition(" ") for line in lines)}
