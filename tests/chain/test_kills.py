"""The submitting process is killed at every event of a chain's submission: no link is there twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

from hpctrain.model.job import State
from hpctrain.run.live import LiveRun
from hpctrain.run.steps.executor import Services
from tests.chain import killed_driver
from tests.chain.rig import ChainRun, environ, plan
from tests.patience import wait_for
from tests.rig.slurm import REPO
from tests.schedulers.site import QUICK

LINKS = 4
WRITE_COUNT = 2 * LINKS  # an intent and an answer for each


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One's own home, and a lost answer looked for twice within a second."""
    monkeypatch.setenv("HOME", str(tmp_path))
    services = LiveRun._services

    def quick(self: LiveRun, *words: object) -> Services:
        return attrs.evolve(services(self, *words), patience=attrs.evolve(QUICK, between=0.2))  # type: ignore[arg-type]

    monkeypatch.setattr(LiveRun, "_services", quick)


@pytest.mark.parametrize("when", ["before", "after"])
def test_continue_hands_over_what_is_missing_and_nothing_twice(when: str, tmp_path: Path) -> None:
    for number in range(1, WRITE_COUNT + 1):
        home = tmp_path / f"{when}{number}"
        home.mkdir()
        script = "echo began >>began; exec sleep 300"
        run = ChainRun.create(home, plan("local", script, total="3h", time="1h"), environ())
        env = {**environ(), "HOME": str(tmp_path), "PYTHONPATH": f"{REPO}/core:{REPO}/plugins:{REPO}"}
        argv = (sys.executable, "-m", killed_driver.__name__, str(run.path), when, str(number))
        assert subprocess.run(argv, env=env, timeout=60).returncode == -9
        live = attrs.evolve(run.live, environ=env)
        live.resume()
        step = live.status().steps[0]
        assert step.chain is not None
        tags = Counter(
            entry["tag"] for entry in live.directory.record.read() if entry["event"] == "submitted"
        )
        assert set(tags.values()) == {1}
        assert len(tags) == LINKS, f"killed {when} event {number}"
        assert len(step.chain.jobs) == LINKS
        wait_for("the first job", (run.path / "began").exists, 20)
        live.resume()
        assert len(run.submitted()) == LINKS, "a second continue has nothing to do"
        live.cancel()
        assert (run.path / "began").read_text() == "began\n"


def test_two_who_continue_at_once_hand_over_each_job_once(tmp_path: Path) -> None:
    script = "[[ ! -e wrong ]] || exit 78; exec sleep 300"
    run = ChainRun.create(tmp_path, plan("local", script, total="3h", time="1h"), environ())
    (run.path / "wrong").touch()
    run.submit()
    wait_for("the end", lambda: run.state().state is State.FAILED and not run.state().chain.jobs)  # type: ignore[union-attr]
    (run.path / "wrong").unlink()
    env = {**environ(), "HOME": str(tmp_path), "PYTHONPATH": f"{REPO}/core:{REPO}/plugins:{REPO}"}
    live = attrs.evolve(run.live, environ=env)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(live.resume) for _ in range(4)]:
            done.result()
    step = live.status().steps[0]
    assert step.chain is not None
    assert len(step.chain.jobs) == LINKS
    assert len(run.submitted()) == 2 * LINKS
    live.cancel()
