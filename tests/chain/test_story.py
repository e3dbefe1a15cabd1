"""A training on a real Slurm that everything happens to, told by `status --json`: nobody is at the keyboard.

`HPCTRAIN_SOAK`: the controller is frozen for a minute, and the training is longer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.model.job import State
from hpctrain_job import metrics, resume
from hpctrain_job.chain.decision import Attempt
from tests.chain.rig import LAYOUT, ChainRun, environ, plan
from tests.conftest import needs
from tests.hangs.test_job import prepare, watched
from tests.patience import wait_for
from tests.rig.conf import Conf
from tests.rig.slurm import REPO, Rig, missing

pytestmark = [pytest.mark.slurm, pytest.mark.torch]
SOAK = bool(os.environ.get("HPCTRAIN_SOAK"))
FROZEN = 60.0 if SOAK else 8.0
GOAL = 1500 if SOAK else 260
DISK = 40 << 20
"""Bytes of the disk of checkpoints, which have a megabyte each; four stay, and those of some ten seconds."""
LOST_ANSWER = """#!/bin/bash
rm {flag} 2>/dev/null || exec {real} "$@"
{real} "$@" >/dev/null
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
"""


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A Slurm of five nodes whose runs save on a small disk of their own."""
    reason = missing()
    needs("slurm", not reason, reason)
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    rig = Rig(Conf(nodes=5, gpus=4, kill_wait=6), keep=[str(Path(python).parents[2])])
    disk = rig.dir / "story/checkpoints"
    disk.mkdir(parents=True)
    subprocess.run(("mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)), check=True, timeout=10)
    try:
        yield rig.up()
    finally:
        subprocess.run(("umount", str(disk)), check=True, timeout=10)
        rig.down()


@attrs.define(eq=False)
class Teller:
    """Asks `hpctrain status --json` again and again, and keeps what it had not heard before."""

    run_folder: Path
    env: dict[str, str]
    over: threading.Event = attrs.field(factory=threading.Event)
    lines: list[str] = attrs.field(factory=list)
    document: dict[str, Any] = attrs.field(factory=dict)

    def tell(self) -> None:
        """Until the story is over."""
        while not self.over.wait(1.0):
            self.ask()

    def ask(self) -> None:
        argv = (sys.executable, "-m", "hpctrain", "status", str(self.run_folder), "--json")
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        self.document = json.loads(done.stdout)
        for line in heard(self.document):
            if line not in self.lines:
                self.lines.append(line)


def heard(document: dict[str, Any]) -> Iterator[str]:
    """What a status says, in words that stay the same while it does."""
    (step,) = document["steps"]
    for name in (document["saved"] or {}).get("damaged", ()):
        yield f"{name} is damaged, and set aside"
    for number, attempt in enumerate(step["chain"]["history"], 1):
        nodes = " ".join(attempt["nodes"])
        yield f"attempt {number} begins on {nodes}, saved at step {attempt['saved_before']}"
        if attempt["cause"]:
            lost = f", without {' '.join(attempt['lost_nodes'])} from now on" if attempt["lost_nodes"] else ""
            yield f"attempt {number} ends, saved at step {attempt['saved_after']}: {attempt['cause']}{lost}"
        if attempt["hang"]:
            yield f"attempt {number} hung: {attempt['hang']}"
    if step["chain"]["found_again"]:
        yield f"job {' '.join(step['chain']['found_again'])} was submitted without an answer, and found again"
    if document["silent"]:
        yield f"the scheduler is silent, its word {document['state']}"
    if step["state"] == "done":
        yield f"done: {step['chain']['ended']}"


def started(rig: Rig) -> ChainRun:
    root = rig.dir / "story"
    script = f"GLOO_SOCKET_IFNAME=lo exec {os.environ['HPCTRAIN_TORCH_PYTHON']} program.py"
    planned = plan(
        "slurm", f'{script} "$HPC_CHECKPOINTS" {GOAL} 0.05', total="2h", time="20m", nodes=2, machine=5,
        jobs=2, keep=4,
    )  # fmt: skip
    run = ChainRun.create(root, watched(planned, "stop", 2, 1), environ(rig.bin), "/usr/bin/python3")
    prepare(run)
    (run.path / "program.py").write_text(Path(__file__).with_name("story.py").read_text())
    run.submit()
    return run


def lose_answers(rig: Rig) -> Path:
    """A file at which the next `sbatch` on a node does its work and loses its answer."""
    flag, real, lossy = (rig.dir / name for name in ("lose-answer", "sbatch", "lossy-sbatch"))
    assert rig.run("cp", "/usr/bin/sbatch", str(real)).returncode == 0
    lossy.write_text(LOST_ANSWER.format(flag=flag, real=real))
    lossy.chmod(0o755)
    assert rig.run("mount", "--bind", str(lossy), "/usr/bin/sbatch").returncode == 0
    return flag


def steps_of(run: ChainRun, number: int, more: int) -> Attempt:
    """The attempt of this number, once it has stepped so often and saved."""

    def has_stepped() -> bool:
        attempts = run.step.record().attempts
        if len(attempts) < number:
            return False
        rows = [row for row in run.rows() if row["job"] == attempts[number - 1].job]
        return len(rows) >= more

    wait_for(f"attempt {number} steps: {run.log()}", has_stepped, 120)
    attempts = run.step.record().attempts
    assert len(attempts) == number, run.log()
    return attempts[-1]


def signal_rank(rig: Rig, run: ChainRun, rank: int, name: str) -> None:
    log = (run.path / f"logs/train.rank{rank}.log").read_text()
    pid = re.findall(r"is process (\d+)", log)[-1]
    assert rig.run("kill", f"-{name}", pid).returncode == 0


def ended(run: ChainRun, number: int) -> None:
    wait_for(
        f"attempt {number} ends: {run.log()}", lambda: not run.step.record().attempts[number - 1].is_open, 90
    )


def test_a_training_survives_all_of_it(rig: Rig, record_property: Any) -> None:
    flag = lose_answers(rig)
    run = started(rig)
    disk = run.live.checkpoints()
    assert disk is not None
    teller = Teller(run.path, {**environ(rig.bin), "HOME": str(rig.dir / "story"), "PYTHONPATH": PATHS})
    telling = threading.Thread(target=teller.tell, daemon=True)
    telling.start()

    dead = steps_of(run, 1, 30).nodes[1]
    rig.lose_node(dead)
    second = steps_of(run, 2, 30)
    (waiting,) = {*rig.run("squeue", "-h", "-o%i").stdout.split()} - {second.job}
    assert f"ExcNodeList={dead}" in rig.run("scontrol", "show", "job", waiting).stdout

    with rig.frozen():  # while an attempt ends, so that its job cannot speak to Slurm
        signal_rank(rig, run, 1, "KILL")
        time.sleep(FROZEN)
    steps_of(run, 3, 30)
    flag.touch()  # as it ends, it hands over a job, and hears nothing of it

    newest = resume.complete(disk, LAYOUT.name, LAYOUT.complete)[-1]
    with (newest.path / "weights").open("r+b") as file:
        file.write(b"another byte")
    signal_rank(rig, run, 1, "KILL")
    hung = steps_of(run, 4, 30).nodes[1]
    assert not flag.exists()

    signal_rank(rig, run, 1, "STOP")
    steps_of(run, 5, 30)

    ballast = disk.parent / "ballast"
    subprocess.run(
        ("cp", "/dev/zero", str(ballast)), timeout=60, stderr=subprocess.DEVNULL
    )  # until it is full
    ended(run, 5)
    wait_for(f"it waits for room: {run.log()}", lambda: len(run.step.record().attempts) > 5 or
             run.log().count("no room for another checkpoint") > 1, 60)  # fmt: skip
    ballast.unlink()  # whoever filled the disk has tidied up

    run.until(State.DONE, seconds=300)
    run.attempts()
    teller.over.set()
    telling.join(120)
    teller.ask()
    told = [line for line in teller.lines if not line.startswith("the scheduler is silent")]
    record_property("story", teller.lines)
    print("\n".join(teller.lines))

    history = teller.document["steps"][0]["chain"]["history"]
    assert [attempt["cause"] for attempt in history] == [
        "node fault", "failed", "failed", "hung", "full disk", "finished"
    ], told  # fmt: skip
    assert (history[0]["lost_nodes"], history[3]["lost_nodes"]) == ([dead], [hung])
    assert not {dead, hung} & set(history[-1]["nodes"])
    assert f"{newest.path.name} is damaged, and set aside" in told
    again = next(row["step"] for row in run.rows() if row["job"] == history[3]["job"])
    assert again == newest.step - 20 + 1, "the one before the damaged one"
    assert [line for line in told if "without an answer" in line]
    assert [line for line in told if line.startswith("attempt 4 hung: rank 1 ")]
    assert not SOAK or [line for line in teller.lines if line.startswith("the scheduler is silent")]
    # the last attempt's own line may change once more after it, when its last checkpoint is entered
    assert told.count("done: finished") == 1
    rows = run.rows()
    lasting = [row for row, is_lost in zip(rows, metrics.lost(rows), strict=True) if not is_lost]
    assert [row["step"] for row in lasting] == list(range(1, GOAL + 1)), "none lost, none twice"
    loss = 10.0
    for step in range(1, GOAL + 1):
        loss = loss * 0.99 + (step * 7919 % 13) * 1e-3
    assert lasting[-1]["loss"] == loss
    jobs = [entry["job"] for entry in run.live.directory.record.read() if entry["event"] == "submitted"]
    assert len(set(jobs)) == len(jobs), "each job once"
    wait_for("an empty queue", lambda: not rig.run("squeue", "-h", "-o%i").stdout.split(), 60)


PATHS = f"{REPO}/core:{REPO}/plugins"
