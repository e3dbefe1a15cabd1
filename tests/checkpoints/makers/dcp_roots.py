"""Distributed checkpoints in the layouts of trainers, saved by torch's own DCP: argument DIR.

Below DIR: a folder for each layout with its config.json, and want/ from transformers' save_pretrained.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import shutil
import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, get_state_dict
from transformers import LlamaConfig, LlamaForCausalLM

folder = Path(sys.argv[1])
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.arange(9)[None]
model(input_ids=tokens, labels=tokens).loss.backward()
optimizer.step()
model.save_pretrained(folder / "want")
weights, state = get_state_dict(model, optimizer)
flat = get_optimizer_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
double = {name: 2 * tensor for name, tensor in weights.items()}
layouts = {
    "torchtitan": {**weights, "optimizer": flat, "train_state": {"step": torch.tensor(3)}},
    "flat": {**weights, **{f"optimizer.{k}": v for k, v in flat.items()}},
    "beside its state": {**weights, **flat},
    "recipe": {"app": {"model": weights, "optim": state}},
    "wrapped": {"model": {f"model.{k}": v for k, v in weights.items()}, "optimizer": state},
    "module": {f"module.{k}": v for k, v in weights.items()},
    "unknown": {"weights": weights, "opt": state, "counts": {"seen": torch.ones(2)}},
    "moments": {"optimizer": state},
    "flat moments": flat,
    "two": {"net": weights, "ema": {"shadow": double}},
}
for name, saved in layouts.items():
    dcp.save(saved, checkpoint_id=folder / name)
    shutil.copy(folder / "want/config.json", folder / name)
