"""A site's ten lines change one variable and the launch of every run, and say that it was them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.thirdparty import scratch
from tests.thirdparty.scratch import HERE, Scratch


@pytest.fixture(scope="module")
def acme(installed: Scratch) -> Iterator[Scratch]:
    """The site's hooks, installed as a distribution."""
    installed.install(scratch.wheel(HERE / "acme-site", installed.folder / "wheels"))
    yield installed
    installed.pip("uninstall", "-y", "acme-site")


def hpctrain(where: Scratch, command: str, run_file: Path, *options: str) -> str:
    done = where.run("hpctrain", command, str(run_file), "--on", "lumi", "--account", "abc123", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_variable_says_who_set_it_and_who_lost(acme: Scratch, run_file: Path) -> None:
    said = hpctrain(acme, "plan", run_file, "--explain", "NCCL_NET")
    assert "NCCL_NET='Socket'" in said
    assert "hooks:acme" in said
    assert "our fabric is under repair" in said
    assert "lumi network" in said, "who lost"


def test_the_prefix_stands_in_front_of_the_ranks(acme: Scratch, run_file: Path, tmp_path: Path) -> None:
    hpctrain(acme, "eject", run_file, "--out", str(tmp_path / "out"))
    job = (tmp_path / "out" / "steps" / "train" / "job.sh").read_text(encoding="utf-8")
    assert "hpc_start numactl --localalloc srun" in job
    task = (tmp_path / "out" / "steps" / "train" / "task.sh").read_text(encoding="utf-8")
    assert "export NCCL_NET=Socket  # hooks:acme: our fabric is under repair" in task


def test_a_site_that_is_switched_off_says_nothing(acme: Scratch, run_file: Path) -> None:
    plan = ("hpctrain", "plan", str(run_file), "--explain", "NCCL_NET")
    done = acme.run("env", "HPCTRAIN_DISABLE_HOOKS=acme", *plan)
    assert "hooks:acme" not in done.stdout
    assert "AWS Libfabric" in done.stdout
