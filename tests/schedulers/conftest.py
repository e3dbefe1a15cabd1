"""The schedulers as sites, so that one test says what all must do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain_plugins.schedulers import local, pbs
from hpctrain_plugins.schedulers import slurm as slurm_plugin
from tests.rig.fixtures import slurm
from tests.rig.slurm import Rig
from tests.schedulers.site import Site
from tests.standin_pbs.fixtures import Standin

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


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    """A stand-in for an OpenPBS of two nodes."""
    found = Standin(tmp_path)
    yield found
    found.clean()


@pytest.fixture
def on_pbs(standin: Standin, tmp_path: Path) -> Iterator[Site]:
    """The stand-in for an OpenPBS."""
    site = Site(pbs, tmp_path, {"PATH": f"{standin.bin}:{os.environ['PATH']}"})
    yield site
    standin.set(down=False, frozen=False)
    site.clean()


@pytest.fixture(params=["local", "pbs", pytest.param("slurm", marks=pytest.mark.slurm)])
def site(request: pytest.FixtureRequest) -> Site:
    """Each scheduler in turn."""
    found: Site = request.getfixturevalue(f"on_{request.param}")
    return found
