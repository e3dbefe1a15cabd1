"""What the story trains: two ranks that reduce a number in every step, and checkpoints of a megabyte.

Started in the job: `python program.py CHECKPOINTS GOAL SECONDS`; it knows nothing of chains and watches.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from hpctrain_job import metrics, resume

EVERY, BYTES = 20, 1 << 20


def loss_after(loss: float, step: int) -> float:
    """The next loss."""
    return loss * 0.99 + (step * 7919 % 13) * 1e-3


def main() -> None:
    """Train to the goal from the newest checkpoint that is whole."""
    folder, goal, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    rank, world = int(os.environ["HPC_RANK"]), int(os.environ["HPC_WORLD"])
    print(f"rank {rank} of {world} is process {os.getpid()}", flush=True)
    place = f"tcp://127.0.0.1:{os.environ['HPC_PORT']}"  # the nodes of a rig are one machine
    dist.init_process_group("gloo", place, rank=rank, world_size=world)
    newest = resume.newest(folder, r"step-(?P<step>\d+)", "state.json")
    step, loss = (newest.step, _loss_in(newest.path)) if newest else (0, 10.0)
    while step < goal:
        step += 1
        loss = loss_after(loss, step)
        time.sleep(seconds)
        dist.all_reduce(torch.ones(8))
        if rank:
            continue
        row = {"time": time.time(), "step": step, "loss": loss, "job": os.environ["HPC_JOB"]}
        metrics.append(os.environ["HPC_RUN"] + "/metrics.jsonl", row)
        if step % EVERY == 0 or step == goal:
            save(folder / f"step-{step}", loss)
    dist.destroy_process_group()


def _loss_in(checkpoint: Path) -> float:
    return float(json.loads((checkpoint / "state.json").read_text())["loss"])


def save(folder: Path, loss: float) -> None:
    """One checkpoint, visible once it is whole."""
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    (fresh / "weights").write_bytes(os.urandom(BYTES))
    (fresh / "state.json").write_text(json.dumps({"loss": loss}))
    resume.write_manifest(fresh)
    fresh.rename(folder)


if __name__ == "__main__":
    main()
