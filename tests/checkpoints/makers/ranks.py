"""Ranks on CPU for the scripts that train with the real DeepSpeed."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import gc
import os

import deepspeed
import deepspeed.runtime.engine
import torch
import torch._dynamo
import torch._inductor.compile_fx
import torch.multiprocessing as mp


def _rank(rank, world, train, folder, spec):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    # an address is wanted but not used: they meet in a file, so no port can be taken
    meet = f"file://{folder}/meet"
    deepspeed.init_distributed(dist_backend="gloo", init_method=meet, rank=rank, world_size=world)
    train(rank, folder, spec)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def start(train, world, folder, spec):
    """Run `train(rank, folder, spec)` in as many processes as the world has, to their end.

    They are forked: importing all this costs more than the training, and once is enough. So what DeepSpeed
    and the first optimizer import when they start is imported above too: two seconds of CPU in every rank.
    """
    folder.mkdir(parents=True)
    torch.set_num_threads(1)
    gc.freeze()  # no rank looks through what all of them have
    mp.start_processes(_rank, (world, train, folder, spec), world, start_method="fork")
