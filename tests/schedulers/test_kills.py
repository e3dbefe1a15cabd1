"""Kill the submitting process at every write and every exec: exactly one job has the run's tag."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hpctrain.run.disk.record import Record
from tests.patience import wait_for
from tests.rig.slurm import REPO, Rig
from tests.schedulers import killed_driver
from tests.standin_pbs.fixtures import Standin

KILLS = 1000 if os.environ.get("HPCTRAIN_SOAK") else 20
DRIVER = (sys.executable, "-m", killed_driver.__name__)
PATHS = {"PYTHONPATH": f"{REPO}/core:{REPO}/plugins:{REPO}", "PYTHONDONTWRITEBYTECODE": "1"}


def places(done: subprocess.CompletedProcess[str]) -> int:
    """How many places for a kill an undisturbed submission has."""
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def moments(places: int, count: int, seed: int) -> list[str]:
    """When to kill: the places in turn from a random one, every third time during sbatch."""
    dice = random.Random(seed)
    order = [f"at:{k}" for k in dice.sample(range(1, places + 1), places)]
    return [f"after:{dice.uniform(0, 0.4):.3f}" if i % 3 == 2 else order[i % places] for i in range(count)]


def tags(folder: Path) -> list[str]:
    """The tags that a run ever used."""
    entries = Record(folder / "run/record.jsonl").read()
    return sorted({str(e["tag"]) for e in entries if e["event"] == "intent"})


@pytest.mark.slurm
def test_kills_never_make_two_jobs_on_slurm(slurm: Rig) -> None:
    home = slurm.home("alice")

    def drive(number: int, when: str) -> subprocess.CompletedProcess[str]:
        folder = str(home / f"kill{number}")
        argv = (*DRIVER, "slurm", folder, when)
        return slurm.run(*argv, user="alice", cwd=home, env=PATHS, timeout=120)

    planned = moments(places(drive(0, "count")), KILLS, seed=2)
    killed = [drive(number, when).returncode for number, when in enumerate(planned, start=1)]
    assert killed.count(-9) > KILLS // 2
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda n: drive(n, "never"), range(1, KILLS + 1)))
    assert [done.stderr for done in again if done.returncode] == []
    names = slurm.run("squeue", "-hatall", "-ualice", "-o%i %j").stdout.splitlines()
    ours = [line.split() for line in names if " toy-run." in line]  # other modules use this Slurm as well
    jobs = {name: job for job, name in ours}
    assert len(jobs) == len(ours)
    for number, done in enumerate(again, start=1):
        (tag,) = tags(home / f"kill{number}")
        mine = [job for name, job in jobs.items() if name.endswith(tag)]
        assert mine == [done.stdout.strip()], f"kill {planned[number - 1]}"
    assert len(ours) == KILLS + 1
    slurm.run("scancel", "-ualice")


def test_kills_never_make_two_jobs_on_pbs(standin: Standin, tmp_path: Path) -> None:
    count = KILLS // 2
    environ = {"PATH": f"{standin.bin}:{os.environ['PATH']}", "HOME": str(tmp_path), **PATHS}

    def drive(number: int, when: str) -> subprocess.CompletedProcess[str]:
        argv = (*DRIVER, "pbs", str(tmp_path / f"kill{number}"), when)
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120)

    planned = moments(places(drive(0, "count")), count, seed=5)
    killed = [drive(number, when).returncode for number, when in enumerate(planned, start=1)]
    assert killed.count(-9) > count // 2
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda n: drive(n, "never"), range(1, count + 1)))
    assert [done.stderr for done in again if done.returncode] == []
    for number, done in enumerate(again, start=1):
        (tag,) = tags(tmp_path / f"kill{number}")
        assert standin.tagged(tag) == [done.stdout.strip()], f"kill {planned[number - 1]}"
    assert len(standin.jobs) == count + 1


def test_kills_never_make_two_jobs_here(tmp_path: Path) -> None:
    count = KILLS // 2
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **PATHS}

    def drive(number: int, when: str) -> subprocess.CompletedProcess[str]:
        argv = (*DRIVER, "local", str(tmp_path / f"kill{number}"), when)
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120)

    planned = moments(places(drive(0, "count")), count, seed=3)
    for number, when in enumerate(planned, start=1):
        drive(number, when)
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda n: drive(n, "never"), range(1, count + 1)))
    assert [done.stderr for done in again if done.returncode] == []
    for number in range(1, count + 1):
        ran = tmp_path / f"kill{number}" / "run/ran"
        wait_for(f"job {number}", ran.exists)
        assert len(tags(tmp_path / f"kill{number}")) == 1
    ends = tmp_path / ".local/state/hpctrain/jobs"
    wait_for("all ends", lambda: len(list(ends.glob("*.end"))) == count + 1)
    for number, done in enumerate(again, start=1):
        assert (tmp_path / f"kill{number}" / "run/ran").read_text() == done.stdout, planned[number - 1]
