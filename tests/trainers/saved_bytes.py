"""Bytes that autograd saves for one token of a model: CONFIG.json TOKENS [mixed] [recomputed].

Run by a Python that has torch and transformers.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

TOKENS = int(sys.argv[2])
config = AutoConfig.for_model(**json.loads(Path(sys.argv[1]).read_text()), attn_implementation="sdpa")
mixed = "mixed" in sys.argv
model = AutoModelForCausalLM.from_config(config, dtype=torch.float32 if mixed else torch.bfloat16)
model.train()
if "recomputed" in sys.argv:
    model.gradient_checkpointing_enable({"use_reentrant": False})
owned = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
saved: dict[int, int] = {}
alive: list[torch.Tensor] = []


def pack(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in owned:
        saved[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # else its address would be another's
    return tensor


ids = torch.randint(0, config.vocab_size, (1, TOKENS))
with (
    torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
    torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed),
):
    model(input_ids=ids, labels=ids)
print(sum(saved.values()) / TOKENS)
