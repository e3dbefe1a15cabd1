"""A training as anybody might write it: it knows nothing of watches. Rank 1 of its first start stops itself.

usage: program.py FLAG   a file that says that it has happened
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group(
    "gloo", f"tcp://127.0.0.1:{os.environ['HPC_PORT']}",  # the nodes of a test are one machine
    rank=int(os.environ["HPC_RANK"]), world_size=int(os.environ["HPC_WORLD"]),
)  # fmt: skip
flag = Path(sys.argv[1])
for step in range(60):
    dist.all_reduce(torch.ones(8))
    time.sleep(0.02)
    if step == 40 and dist.get_rank() == 1 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
print("trained", flush=True)
dist.destroy_process_group()
