"""A small network learns a function of random numbers, data-parallel over all ranks.

It needs no data and no hub: what to replace by your own training.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def join() -> torch.device:
    """Join the other ranks; hpctrain says who and where they are."""
    rank, world = int(os.environ["HPC_RANK"]), int(os.environ["HPC_WORLD"])
    where = f"tcp://{os.environ['HPC_HEAD']}:{os.environ['HPC_PORT']}"
    if not torch.cuda.is_available():
        dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world)
        return torch.device("cpu")
    dist.init_process_group("nccl", init_method=where, rank=rank, world_size=world)
    # A site may show each rank all GPUs of its node or only its own.
    device = torch.device("cuda", int(os.environ["HPC_LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def main() -> int:
    """Train; 1 when the network did not learn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    device = join()
    torch.manual_seed(0)  # the same start on every rank
    hidden = torch.nn.Linear(8, 256)
    network = torch.nn.Sequential(hidden, torch.nn.Tanh(), torch.nn.Linear(256, 1)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(1 + dist.get_rank())  # other data on every rank
    first = last = 0.0
    for step in range(1, steps + 1):
        x = torch.randn(256, 8, device=device)
        loss = (model(x) - x.sin().sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
        first = first or last
        if dist.get_rank() == 0 and (step == 1 or step % 50 == 0):
            print(f"step={step} loss={last:.4f}", flush=True)
    dist.destroy_process_group()
    return 0 if last < first / 4 else 1


if __name__ == "__main__":
    raise SystemExit(main())
