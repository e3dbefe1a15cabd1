"""Models of many families as transformers, torch and peft save them: arguments DIR, JSON as families_make.py.

Below DIR/FAMILY: hf/ by save_pretrained, dcp/ and hf-sharded/ of the same weights over two ranks with FSDP2,
and peft/, an adapter, with merged/, what peft makes of it.
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
import transformers
from families_make import SIZES
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import fully_shard

RANKS = 2


def saved(folder, kind, settings):
    """What save_pretrained writes."""
    torch.manual_seed(3)
    model = getattr(transformers, kind)
    sizes = {key: size for key, size in SIZES.items() if "NeoX" not in kind or key != "num_key_value_heads"}
    model = model(model.config_class(**sizes | settings))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(folder / "hf")
    return model


def sharded(rank, root, families):
    """The same weights, of which each rank has a part."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{root}/meet", rank=rank, world_size=RANKS)
    for family in families:
        folder = root / family
        model = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32)
        fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (RANKS,)))
        weights = get_model_state_dict(model)
        dcp.save(weights, checkpoint_id=folder / "dcp")
        if model.config.tie_word_embeddings:
            weights.pop("lm_head.weight")  # safetensors refuses two names for one tensor
        writer = dcp.HuggingFaceStorageWriter(
            str(folder / "hf-sharded"), fqn_to_index_mapping=dict.fromkeys(weights, 1), save_distributed=True
        )
        dcp.save(weights, storage_writer=writer)
        if rank == 0:
            for name in ("dcp", "hf-sharded"):
                model.config.save_pretrained(folder / name)
        dist.barrier()
    os._exit(0)  # a rank that takes Python apart may abort: https://github.com/pytorch/pytorch/issues/190489


def adapted(folder):
    """An adapter of the attention's output, which every family has under one of two names."""
    from peft import LoraConfig, get_peft_model

    base = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32)
    names = {name.rpartition(".")[2] for name, _ in base.named_modules()}
    target = "o_proj" if "o_proj" in names else "dense"
    model = get_peft_model(base, LoraConfig(r=4, init_lora_weights=False, target_modules=[target]))
    model.save_pretrained(folder / "peft")
    file = folder / "peft/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "base_model_name_or_path": "../hf"}))
    model.merge_and_unload().save_pretrained(folder / "merged")


if __name__ == "__main__":
    root, families = Path(sys.argv[1]), json.loads(sys.argv[2])
    for family, (kind, settings) in families.items():
        saved(root / family, kind, settings)
        adapted(root / family)
    mp.start_processes(sharded, (root, list(families)), nprocs=RANKS, start_method="fork")
