"""The two schedulers as sites, so that one test says what both must do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain_plugins.schedulers import local
from hpctrain_plugins.schedulers import slurm as slurm_plugin
from tests.rig.fixtures import slurm
from tests.rig.slurm import Rig
from tests.schedulers.site import Site

__all__ = ["slurm"]


@pytest.fixture
def on_local(tmp_path: Path) -> Iterator[Site]:
    """This machine."""
    site = Site(local, tmp_path, {"PATH": os.environ["PATH"]})
    yield site
    site.clean()


@pytest.fixture
def on_slurm(slurm: Rig, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The real Slurm, spoken to as root; its folder is visible inside and outside."""
    root = slurm.dir / "sites" / request.node.name.replace("/", "_")[:60]
    root.mkdir(parents=True)
    site = Site(slurm_plugin, root, {"PATH": f"{slurm.bin}:{os.environ['PATH']}"})
    yield site
    site.clean()


@pytest.fixture(params=["local", pytest.param("slurm", marks=pytest.mark.slurm)])
def site(request: pytest.FixtureRequest) -> Site:
    """Each scheduler in turn."""
    found: Site = request.getfixturevalue(f"on_{request.param}")
    return found
