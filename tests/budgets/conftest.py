"""An installation as users have it, byte code and all, and a crowd of other distributions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.packaging.conftest import dist as dist
from tests.packaging.conftest import make as make
from tests.packaging.environment import Environment
from tests.packaging.places import OWN, ROOT

CROWD = 300
EXAMPLE = ROOT / "hpc_frontier/hpc_frontier/examples/lora-2x8.toml"


@pytest.fixture(scope="session")
def installed(make: Callable[..., Environment]) -> Environment:
    """Every distribution of ours, installed from wheels."""
    return make(OWN, "hpctrain[clusters]")


@pytest.fixture(scope="session")
def bare(installed: Environment) -> tuple[str, ...]:
    """What all is compared with."""
    return (str(installed.bin / "python"), "-c", "pass")


@pytest.fixture(scope="session")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that show a process 300 more distributions: dummies, folders of metadata alone."""
    site = tmp_path_factory.mktemp("crowd")
    for number in range(CROWD):
        info = site / f"crowd_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: crowd-{number}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[console_scripts]\ncrowd{number} = crowd{number}:main\n")
    return {"PYTHONPATH": str(site)}
