"""Users with homes of their own: on this computer, and on the real Slurm of the rig."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.product import Product, installed
from tests.e2e.rig_cluster import write_cluster
from tests.rig.conf import USERS
from tests.rig.fixtures import slurm
from tests.rig.slurm import Rig

__all__ = ["slurm"]
_NUMBER = count(1)


@pytest.fixture
def here(tmp_path: Path) -> Product:
    """A user of this computer."""
    installed()
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return Product(tmp_path / "home", tmp_path / "work")


@pytest.fixture(scope="session")
def rig_plugin(slurm: Rig) -> Path:
    """A folder for PYTHONPATH with a cluster plugin for the rig."""
    return write_cluster(slurm.dir / "site")


@pytest.fixture
def alice(slurm: Rig, rig_plugin: Path) -> Iterator[Product]:
    """An ordinary user on the rig's login node, with a home for this test alone."""
    installed()
    home = slurm.home("alice") / f"test{next(_NUMBER)}"
    work = home / "work"
    work.mkdir(parents=True)
    for path in (home, work):
        os.chown(path, USERS["alice"], USERS["alice"])
    yield Product(
        home,
        work,
        {"PYTHONPATH": str(rig_plugin), "USER": "alice", "CANARY": "1"},
        tuple(slurm.inside((), user="alice", cwd=work)),
    )
    slurm.run("scancel", "-ualice")
