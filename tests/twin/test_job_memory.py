"""The memory that a twin gives a rank: enough for the parts, and never more than the site gives."""

from __future__ import annotations

import os
import sys

import pytest

from tests.twin import job_memory, site_file, slurmconf
from tests.twin.fixtures import Start

SITES = site_file.names()


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("step_mb", [0, 500, 780, 2000])
def test_a_rank_holds_a_step_and_no_site_is_outdone(name: str, step_mb: int) -> None:
    cluster = site_file.load(name).cluster
    memory = job_memory.memory_per_core(cluster, step_mb)
    assert memory >= job_memory.POOREST
    assert memory * cluster.launch.cpus_per_gpu >= step_mb * job_memory.MARGIN
    assert memory * cluster.hardware.cores_per_node <= cluster.hardware.memory_gb * 1024


@pytest.mark.parametrize("name", SITES)
def test_what_no_rank_fits_into_is_the_site_s_own_limit(name: str) -> None:
    cluster = site_file.load(name).cluster
    site = int(cluster.hardware.memory_gb * 1024) // cluster.hardware.cores_per_node
    assert job_memory.memory_per_core(cluster, 10**7) == site


def test_slurm_is_told() -> None:
    conf = slurmconf.files(site_file.load("frontier"), step_mb=1400)["slurm.conf"]
    assert "\nDefMemPerCPU=300\n" in conf


@pytest.mark.torch
def test_the_step_is_measured_once(monkeypatch: pytest.MonkeyPatch, twin: Start, torch: None) -> None:
    python = os.environ["HPCTRAIN_TORCH_PYTHON"]
    measured = job_memory.step_mb(python)
    assert 150 < measured < 4000, "torch alone takes more than 150 MB"
    monkeypatch.setattr("tests.twin.job_memory._measured", lambda _: pytest.fail("measured again"))
    assert job_memory.step_mb(python) == measured


def test_an_interpreter_without_torch_says_so() -> None:
    with pytest.raises(job_memory.Unmeasured, match="No module named 'torch'"):
        job_memory.step_mb(sys.executable)
