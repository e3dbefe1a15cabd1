"""What one node measures of itself: GPUs, memory, own disk, clock, a product of matrices.

`python -m hpctrain_job.vet.node FOLDER GPU_KIND` leaves FOLDER/NODE_RANK.json, whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hpctrain_job.vet.judgement import LEAST_DISK

SIZE = 96
"""Rows of the matrices: about a fifth of a second of Python, which every node has."""
ROUNDS = 5
"""The fastest counts: what else a node does for a moment makes it no slow one."""
GPU_SECONDS = 20
BLOCK = 2**20
QUERIES = {
    "cuda": (
        "nvidia-smi",
        "--query-gpu=memory.total,ecc.errors.uncorrected.volatile.total",
        "--format=csv,noheader,nounits",
    ),
    "rocm": ("rocm-smi", "--showmeminfo", "vram", "--csv"),
}


def measured(kind: str) -> dict[str, Any]:
    """All of it; what went wrong is a sentence in it."""
    report: dict[str, Any] = {"host": socket.gethostname(), "began": time.time()}
    gpus, gpu_fault = gpus_of(kind)
    product, seconds = timed()
    return {
        **report,
        "gpus": gpus,
        "gpu_fault": gpu_fault,
        "counted": kind in QUERIES,
        "memory": total_memory(),
        "product": product,
        "seconds": seconds,
        "disk_fault": disk_fault(Path(os.environ.get("TMPDIR") or "/tmp")),  # noqa: S108
    }


def total_memory() -> int:
    """Bytes of the node: what is free changes with caches."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def gpus_of(kind: str) -> tuple[list[dict[str, int]], str]:
    """Memory in MiB and uncorrected errors of each GPU, or why nobody can say."""
    argv = QUERIES.get(kind)
    if argv is None:
        return [], ""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=GPU_SECONDS, check=False)
    except FileNotFoundError:
        return [], f"{argv[0]} is not here"
    except subprocess.TimeoutExpired:
        return [], f"{argv[0]} did not answer within {GPU_SECONDS} s"
    if done.returncode:
        return [], f"{argv[0]}: {(done.stderr or done.stdout).strip()[:200]}"
    rows = [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines()]
    if kind == "rocm":
        rows = [[str(int(row[1]) // BLOCK)] for row in rows if len(row) > 1 and row[1].isdecimal()]
    return [_gpu(row) for row in rows if row and row[0].isdecimal()], ""


def _gpu(row: list[str]) -> dict[str, int]:
    """Errors are not counted where the driver says [N/A]."""
    errors = row[1] if len(row) > 1 else ""
    return {"memory": int(row[0]), "errors": int(errors) if errors.isdecimal() else 0}


def timed() -> tuple[str, float]:
    """The digest of a product that is the same everywhere, and how long it took at best."""
    values = random.Random(0)  # noqa: S311
    left = [[values.randrange(10**6) for _ in range(SIZE)] for _ in range(SIZE)]
    right = [[values.randrange(10**6) for _ in range(SIZE)] for _ in range(SIZE)]
    times, digests = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        rows = [[sum(map(operator.mul, row, column)) for column in right] for row in left]
        times.append(time.perf_counter() - began)
        digests.append(hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12])
    odd = next((digest for digest in digests if digest != digests[0]), digests[0])
    return odd, min(times)


def disk_fault(folder: Path) -> str:
    """What is wrong with the node's own folder: bytes are written and read back."""
    block = random.Random(1).randbytes(BLOCK)  # noqa: S311
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="hpctrain-vet-") as file:
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            if file.read() != block:
                return f"{folder} gives back other bytes than were written"
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return "" if free >= LEAST_DISK else f"{folder} is full"


def main(folder: Path, kind: str, rank: str) -> None:
    """Measure, and leave it where the judge looks."""
    document = measured(kind)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{rank}"
    partial.write_text(json.dumps({**document, "rank": int(rank)}), encoding="utf-8")
    partial.rename(folder / f"{rank}.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "", os.environ.get("HPC_NODE_RANK", "0"))
