"""Add up tensors over all ranks, check every value, and print what the network carried.

A fabric that is set up wrongly may be slow, or fast and wrong: times alone do not tell.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist


def join() -> torch.device:
    """Join the other ranks; hpctrain says who and where they are."""
    cuda = torch.cuda.is_available()
    head, port = os.environ["HPC_HEAD"], os.environ["HPC_PORT"]
    dist.init_process_group(
        "nccl" if cuda else "gloo",
        init_method=f"tcp://{head}:{port}",
        rank=int(os.environ["HPC_RANK"]),
        world_size=int(os.environ["HPC_WORLD"]),
    )
    if not cuda:
        return torch.device("cpu")
    # A site may show each rank all GPUs of its node or only its own.
    local = int(os.environ["HPC_LOCAL_RANK"]) % torch.cuda.device_count()
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def measure(count: int, device: torch.device) -> tuple[float, int]:
    """Seconds of one sum over `count` numbers, and how many of its results are wrong."""
    pattern = torch.arange(count, device=device, dtype=torch.float32) % 1024
    user_values = pattern * (dist.get_rank() + 1)
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(user_values)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    world = dist.get_world_size()
    wrong = (user_values != pattern * (world * (world + 1) // 2)).sum()
    dist.all_reduce(wrong)
    return seconds, int(wrong)


def main() -> int:
    """Grow from 1 MiB to the size that was asked for; 1 when a value was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=256, help="largest tensor")
    largest = parser.parse_args().mebibytes
    device = join()
    world, failed, size = dist.get_world_size(), 0, 1
    measure(1, device)  # the first sum also opens the connections
    while size <= largest:
        seconds, wrong = measure(size * 2**18, device)
        failed += wrong
        bus = 2 * (world - 1) / world * size * 2**20 / seconds / 1e9
        if dist.get_rank() == 0:
            line = f"MiB={size} ms={seconds * 1e3:.3f} bus_GB_per_s={bus:.2f} wrong={wrong}"
            print(line, flush=True)
        size *= 4
    dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
