"""FSDP2 on CPU ranks saved by torch's own DCP and as sharded safetensors: argument DIR.

Below DIR: dcp/ and sharded/, want.safetensors from torch's own consolidation.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import os
import sys
from pathlib import Path

import torch
import torch._dynamo  # what the first optimizer imports: once, before the ranks are forked
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard


class Toy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(1003, 12)
        self.norm = torch.nn.LayerNorm(12)
        self.experts = torch.nn.Parameter(torch.randn(5, 6, 12))
        self.out = torch.nn.Linear(12, 7)
        self.register_buffer("count", torch.arange(3))

    def forward(self, x):
        return self.out(self.norm(self.embed(x))).sum() + self.experts.sum()


def work(rank, world, folder):
    torch.set_num_threads(1)
    # They meet in a file, so no port can be taken.
    meet = f"file://{folder.absolute()}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=world)
    torch.manual_seed(0)
    model = Toy().bfloat16()
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (world,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model(torch.arange(9)).backward()
    optimizer.step()
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments, "step": 17}, checkpoint_id=folder / "dcp/step_17")
    dcp.save(weights, checkpoint_id=folder / "plain")
    writer = dcp.HuggingFaceStorageWriter(
        path=str(folder / "sharded"),
        fqn_to_index_mapping=dict.fromkeys(weights, 1),
        save_distributed=True,
    )
    dcp.save(weights, storage_writer=writer)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # a rank that takes Python apart may abort: https://github.com/pytorch/pytorch/issues/190489


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    mp.start_processes(work, (3, folder), nprocs=3, start_method="fork")
    from safetensors.torch import save_file
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    dcp_to_torch_save(folder / "plain", folder / "plain.pt")
    save_file(torch.load(folder / "plain.pt", weights_only=True), folder / "want.safetensors")
