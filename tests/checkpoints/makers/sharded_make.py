"""A Llama over two CPU ranks with FSDP2, as sharded safetensors of torch's own writer: argument DIR."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import os
import sys
from pathlib import Path

import torch
import torch.multiprocessing as mp
from transformers import LlamaConfig, LlamaForCausalLM


def work(rank, world, folder):
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder.absolute()}/meet", rank=rank, world_size=world
    )
    config = LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (world,)))
    weights = get_model_state_dict(model)
    names = dict.fromkeys(weights, 1)
    writer = dcp.HuggingFaceStorageWriter(str(folder), fqn_to_index_mapping=names, save_distributed=True)
    dcp.save(weights, storage_writer=writer)
    if rank == 0:
        config.architectures = ["LlamaForCausalLM"]
        config.save_pretrained(folder)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # a rank that takes Python apart may abort: https://github.com/pytorch/pytorch/issues/190489


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir()
    mp.spawn(work, (2, Path(sys.argv[1])), nprocs=2)
