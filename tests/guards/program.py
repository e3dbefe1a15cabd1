"""What ranks of these tests train: all of them meet once in every step, as ranks that reduce gradients do.

Started in the job: `python3 program.py CHECKPOINTS GOAL SECONDS`; it uses what travels there alone.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

from hpctrain_job import metrics, resume
from hpctrain_job.signals import EXIT_SAVED, Stop

NAME, EVERY = r"step-(?P<step>\d+)", 20
GO, STOP = b"g", b"s"


def loss_after(loss: float, step: int) -> float:
    """The next loss."""
    return loss * 0.99 + (step * 7919 % 13) * 1e-3


def main() -> int:
    """Train to the goal, or save and stop when a signal comes; a rank whose peer is gone ends with 1."""
    folder, goal, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    stop = Stop().listen()
    rank, world = int(os.environ["HPC_RANK"]), int(os.environ["HPC_WORLD"])
    print(f"rank {rank} of {world} is process {os.getpid()} on {os.environ['SLURMD_NODENAME']}", flush=True)
    if rank:
        return follow(goal, stop)
    peers = listen(world - 1)
    newest = resume.newest(folder, NAME, "state.json", lambda message: print(message, flush=True))
    step, loss = newest.step if newest else 0, 10.0
    if newest:
        loss = json.loads((newest.path / "state.json").read_text())["loss"]
    while step < goal and not stop:
        time.sleep(seconds)
        stops = bool(stop) or any(peer.recv(1) == STOP for peer in met(peers))
        step += 1
        loss = loss_after(loss, step)
        row = {"time": time.time(), "step": step, "loss": loss, "job": os.environ["HPC_JOB"]}
        metrics.append(os.environ["HPC_RUN"] + "/metrics.jsonl", row)
        last = step == goal or bool(stop) or stops
        if step % EVERY == 0 or last:
            save(folder / f"step-{step}", loss)
        for peer in peers:
            peer.sendall(STOP if last else GO)
        if last:
            break
    if step < goal:
        return EXIT_SAVED
    print(f"final loss {loss!r}", flush=True)
    return 0


def met(peers: list[socket.socket]) -> list[socket.socket]:
    """The peers, once each has something to say: one that is gone ends this rank."""
    for peer in peers:
        if not peer.recv(1, socket.MSG_PEEK):
            raise ConnectionError("a peer is gone")
    return peers


def listen(count: int) -> list[socket.socket]:
    with socket.create_server((os.environ["HPC_HEAD"], int(os.environ["HPC_PORT"]))) as server:
        server.settimeout(30)
        peers = [server.accept()[0] for _ in range(count)]
    for peer in peers:
        peer.settimeout(None)
    return peers


def follow(goal: int, stop: Stop) -> int:
    """Meet rank 0 in every step until it says that it saved."""
    until = time.monotonic() + 30
    while True:
        try:
            head = socket.create_connection((os.environ["HPC_HEAD"], int(os.environ["HPC_PORT"])), 5)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    head.settimeout(None)
    while True:
        head.sendall(STOP if stop else GO)
        answer = head.recv(1)
        if not answer:
            raise ConnectionError("rank 0 is gone")
        if answer == STOP:
            return EXIT_SAVED if stop else 0


def save(folder: Path, loss: float) -> None:
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    (fresh / "state.json").write_text(json.dumps({"loss": loss}))
    resume.write_manifest(fresh)
    if not folder.exists():
        fresh.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
