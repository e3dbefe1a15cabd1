"""FSDP2 trains, saves by torch's own DCP and goes on, on other ranks too: arguments DIR, JSON name -> ranks.

DIR/saved is what two ranks saved after two of four steps. Prints the losses of all four by them, and of the
last two by as many ranks as each name says, from DIR/saved as it is.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import os
import sys
from pathlib import Path

import torch
import torch._dynamo  # what the first optimizer imports: once, before the ranks are forked
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

BATCH, STEPS, SAVED_BY = 12, 4, 2


class Net(torch.nn.Module):
    """Sizes that no number of ranks divides."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(37, 13)
        self.first = torch.nn.Linear(13, 29)
        self.second = torch.nn.Linear(29, 37)

    def forward(self, tokens):
        out = self.second(torch.tanh(self.first(self.embed(tokens[:, :-1]))))
        return torch.nn.functional.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())


def train(rank, ranks, folder, name):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{name}", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    model = Net()
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (ranks,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = 0
    if name:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(7)  # what is not read must not pass for it
        weights, moments = get_state_dict(model, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=folder / "saved")
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        first = STEPS // 2
    losses = []
    for step in range(first, STEPS):
        if step == STEPS // 2 and not name:
            weights, moments = get_state_dict(model, optimizer)
            dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=folder / "saved")
        tokens = torch.randint(0, 37, (BATCH, 7), generator=torch.Generator().manual_seed(step))
        loss = model(tokens.chunk(ranks)[rank])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / ranks)
    if rank == 0:
        (folder / f"losses-{name}.json").write_text(json.dumps(losses))
    dist.barrier()
    os._exit(0)  # a rank that takes Python apart may abort: https://github.com/pytorch/pytorch/issues/190489


if __name__ == "__main__":
    folder, jobs = Path(sys.argv[1]), json.loads(sys.argv[2])
    folder.mkdir()
    for name, ranks in {"": SAVED_BY, **jobs}.items():
        mp.start_processes(train, (ranks, folder, name), nprocs=ranks, start_method="fork")
    print(json.dumps({n: json.loads((folder / f"losses-{n}.json").read_text()) for n in ("", *jobs)}))
