"""What a chain of the tests trains: a loss that depends on every step before it, and checkpoints.

Started in the job: `python3 program.py CHECKPOINTS GOAL SECONDS`; it uses what travels there alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from hpctrain_job import metrics, resume
from hpctrain_job.signals import EXIT_SAVED, Stop

NAME, EVERY = r"step-(?P<step>\d+)", 20


def loss_after(loss: float, step: int) -> float:
    """The next loss."""
    return loss * 0.99 + (step * 7919 % 13) * 1e-3


def main() -> int:
    """Train to the goal, or save and stop when a signal comes."""
    folder, goal, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    stop = Stop().listen()
    newest = resume.newest(folder, NAME, "state.json", lambda message: print(message, flush=True))
    step, loss = newest.step if newest else 0, 10.0
    if newest:
        loss = json.loads((newest.path / "state.json").read_text())["loss"]
    print(f"attempt in job {os.environ['HPC_JOB']} begins after step {step}", flush=True)
    while step < goal and not stop:
        step += 1
        loss = loss_after(loss, step)
        time.sleep(seconds)
        row = {"time": time.time(), "step": step, "loss": loss, "job": os.environ["HPC_JOB"]}
        metrics.append(os.environ["HPC_RUN"] + "/metrics.jsonl", row)
        if step % EVERY == 0 or step == goal or stop:
            save(folder / f"step-{step}", loss)
    if step < goal:
        return EXIT_SAVED
    print(f"final loss {loss!r}", flush=True)
    return 0


def save(folder: Path, loss: float) -> None:
    fresh = folder.with_name(f".{folder.name}")
    fresh.mkdir(parents=True)
    (fresh / "state.json").write_text(json.dumps({"loss": loss}))
    resume.write_manifest(fresh)
    fresh.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
