"""Real ranks over gloo, watched by the real watches of two nodes: who hangs is named, who is slow is not.

Times are short: a verdict after two seconds where the product takes thirty. `HPCTRAIN_SOAK`: how many seeds.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.hangs import verdicts
from tests.conftest import needs
from tests.hangs.ports import free_port

TERMS = {"suspect": 2.0, "watch": 1.5, "busy": 5.0, "long": 120.0, "gone": 1.5, "silent": 20.0}
WORLD = 4
PATIENCE = 120.0
"""Seconds; for a machine that has much else to do."""
ROOT = Path(__file__).resolve().parents[2]
ENVIRON = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'core'}:{ROOT}"}
SOAK = int(os.environ.get("HPCTRAIN_SOAK", "1"))
HANGS = {  # the event, and what it may be called
    "stop": {"stopped"},
    "loop": {"busy"},
    "deaf_loop": {"busy"},
    "sleep": {"idle"},
    "leave": {"mismatch", "order"},
    "skip": {"mismatch", "order"},
}
SLOW = ("evaluate", "tidy", "save", "copy", "nothing")

pytestmark = pytest.mark.torch


class Ranks:
    """The ranks of one case; `code` is how the program ended that forked them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.code: int | None = None
        assert process.stdout is not None
        self.pid, *self.pids = json.loads(process.stdout.readline())

    def poll(self) -> int | None:
        """Its code; None while it runs."""
        assert self.process.stdout is not None
        if self.code is None and select.select([self.process.stdout], [], [], 0)[0]:
            self.code = json.loads(self.process.stdout.readline())
        return self.code

    def wait(self, seconds: float) -> int | None:
        """Its code once it has ended; None: it did not."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        return self.code

    def end(self) -> None:
        """Kill what is left of them."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        assert self.wait(60) is not None


class Trainings:
    """One interpreter that has torch, from which all cases are forked."""

    def __init__(self, python: str, log: Path) -> None:
        self.log = log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [python, str(Path(__file__).with_name("training.py"))], text=True, env=ENVIRON,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def begin(self, case: dict[str, Any]) -> Ranks:
        """Start one."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        return Ranks(self.process)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    """Where cases are started, or a skip that says which capability is missing."""
    named = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(named), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    started = Trainings(named, tmp_path_factory.mktemp("trainings") / "errors.log")
    with started.process:
        yield started
        assert started.process.stdin is not None
        started.process.stdin.close()


@contextmanager
def watched(folder: Path, trainings: Trainings, case: dict[str, Any], *options: str) -> Iterator[Ranks]:
    """The ranks of a case with a watch for each node; all are gone afterwards."""
    for name in ("logs", "steps/train"):
        (folder / name).mkdir(parents=True)
    ranks = trainings.begin({**case, "world": WORLD, "port": free_port(), "folder": str(folder)})
    words = [*options, *(word for name, seconds in TERMS.items() for word in ("--term", name, str(seconds)))]
    own = {"HPC_RUN": str(folder), "HPC_STEP": "train", "HPC_JOB": "7"}
    watches = [
        subprocess.Popen(
            [sys.executable, "-m", "hpctrain_job.hangs.watch", f"--parent={ranks.pids[2 * node]}", *words],
            env={**ENVIRON, **own, "HPC_NODE_RANK": str(node), "HPC_PULSE": str(folder / f"pulse{node}")},
        )
        for node in range(WORLD // 2)
    ]
    try:
        yield ranks
    finally:
        ranks.end()
        for watch in watches:
            assert watch.wait(60) == 0, "a watch ends with the ranks"
        assert not list(folder.glob("pulse*"))


def verdict_of(folder: Path, seconds: float, ranks: Ranks) -> verdicts.Written | None:
    """The first verdict, or None after some seconds or when the training is through."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and ranks.poll() is None:
        if (written := verdicts.newest(folder / "steps/train")) is not None:
            return written
        time.sleep(0.1)
    return verdicts.newest(folder / "steps/train")


def drawn(seed: int, layout: str) -> dict[str, Any]:
    """A fault of one rank at one step, by chance."""
    chance = random.Random(seed)
    return {
        "layout": layout, "rank": chance.randrange(WORLD), "at": chance.randrange(30, 50), "steps": 10_000,
        "seconds": chance.uniform(3.0, 4.5),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(SOAK))
@pytest.mark.parametrize("event", HANGS)
def test_the_rank_that_hangs_is_named(tmp_path: Path, trainings: Trainings, event: str, seed: int) -> None:
    layout = "ddp" if (list(HANGS).index(event) + seed) % 2 else "mesh"
    case = {**drawn(1000 * seed + list(HANGS).index(event), layout), "event": event}
    if event in ("leave", "skip"):
        case["layout"] = "ddp"
    if event in ("loop", "deaf_loop"):  # rank 0 alone has the time of an evaluation
        case["rank"] = max(1, case["rank"])
    with watched(tmp_path, trainings, case) as ranks:
        written = verdict_of(tmp_path, PATIENCE, ranks)
    assert written is not None, (case, trainings.log.read_text())
    assert (written.ranks, written.node_ranks) == ((case["rank"],), (case["rank"] // 2,)), (case, written)
    assert written.kind in HANGS[event]
    assert f"rank {case['rank']} on" in (tmp_path / "logs/train.log").read_text()


@pytest.mark.parametrize("seed", range(SOAK))
@pytest.mark.parametrize("event", SLOW)
def test_a_slow_phase_accuses_nobody(tmp_path: Path, trainings: Trainings, event: str, seed: int) -> None:
    case = {**drawn(5000 + 1000 * seed + SLOW.index(event), "ddp" if seed % 2 else "mesh"), "event": event}
    case |= {"steps": 60, "rank": -1 if event == "nothing" else 0}
    if event == "copy":
        case["rank"] = 2
    if event == "save":  # the first step is slow too
        case["at"] = 0
    with watched(tmp_path, trainings, case) as ranks:
        assert verdict_of(tmp_path, PATIENCE, ranks) is None, case
        assert ranks.poll() == 0, trainings.log.read_text()
    assert not (tmp_path / "steps/train" / verdicts.FILE).exists()


def test_ranks_that_hang_are_ended_where_that_is_asked(tmp_path: Path, trainings: Trainings) -> None:
    case = {**drawn(77, "ddp"), "event": "stop"}
    with watched(tmp_path, trainings, case, "--on-hang=stop") as ranks:
        assert ranks.wait(PATIENCE) == 0, "all are gone, the stopped one too"
    written = verdicts.newest(tmp_path / "steps/train", "7")
    assert written is not None
    assert written.ends
    assert (tmp_path / "steps/train" / verdicts.ENDED).read_text() == f"{written.words}\n"
    assert verdicts.blamed(tmp_path / "steps/train", "7", ["nid1", "nid2"]) == (
        f"nid{case['rank'] // 2 + 1}",
    )


def test_what_moves_again_is_taken_back(tmp_path: Path, trainings: Trainings) -> None:
    case = {**drawn(78, "mesh"), "event": "stop", "steps": 200}
    with watched(tmp_path, trainings, case) as ranks:
        written = verdict_of(tmp_path, PATIENCE, ranks)
        assert written is not None
        for path in tmp_path.glob(f"pulse*/{written.ranks[0]}.*.json"):
            os.kill(json.loads(path.read_text())["pid"], signal.SIGCONT)
        end = time.monotonic() + PATIENCE
        while verdicts.newest(tmp_path / "steps/train") is not None and time.monotonic() < end:
            time.sleep(0.1)
        assert verdicts.newest(tmp_path / "steps/train") is None
    assert "what hung moves again" in (tmp_path / "logs/train.log").read_text()
