"""The wheels, and environments in which nothing but them and their dependencies is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.packaging.environment import Environment, build
from tests.packaging.places import MEMBERS, ROOT, WHEELS, pythons

Make = Callable[..., Environment]


@pytest.fixture(scope="session")
def dist() -> Path:
    """The folder with the wheel of every distribution."""
    build(ROOT / "dist")
    return ROOT / "dist"


@pytest.fixture(scope="session")
def wheels(dist: Path) -> dict[str, Path]:
    """Distribution -> its one wheel."""
    found = {name: sorted(dist.glob(f"{name}-*.whl")) for name in MEMBERS}
    assert {name: len(files) for name, files in found.items()} == dict.fromkeys(MEMBERS, 1)
    return {name: files[0] for name, files in found.items()}


@pytest.fixture(scope="session")
def make(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """`make(version, *requirements)`: the environment with exactly these, made once."""
    made: dict[tuple[str, ...], Environment] = {}

    def environment(version: str, *requirements: str) -> Environment:
        base = pythons().get(version, "")
        needs(f"python{version}", bool(base), f"this machine has no Python {version}")
        needs("wheels", any(WHEELS.glob("*.whl")), "no downloaded wheels (make setup)")
        key = (version, *requirements)
        if key not in made:
            made[key] = Environment(base, tmp_path_factory.mktemp("env") / "venv")
            made[key].install(dist, *requirements)
        return made[key]

    return environment
