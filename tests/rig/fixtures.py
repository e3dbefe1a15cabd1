"""Fixtures of the rig: import `slurm` into a conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import needs
from tests.rig.slurm import Rig, missing


@pytest.fixture(scope="session")
def slurm() -> Iterator[Rig]:
    """A running Slurm with two nodes of four GPUs, shared by all tests of this process."""
    reason = missing()
    needs("slurm", not reason, reason)
    rig = Rig().up()
    yield rig
    rig.down()
