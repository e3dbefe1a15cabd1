"""Adapters that peft itself saved, with peft's own merge beside them: JSON, name -> [DIR, SPEC]."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

for place, spec in json.loads(sys.argv[1]).values():
    folder = Path(place)
    torch.manual_seed(4)
    dtype = getattr(torch, spec.pop("dtype", "bfloat16"))
    if spec.pop("gpt2", False):
        base = GPT2LMHeadModel(GPT2Config(vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=64))
    else:
        base = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
            )
        )  # fmt: skip
    base = base.to(dtype)
    base.save_pretrained(folder / "base")
    model = get_peft_model(base, LoraConfig(init_lora_weights=False, **spec))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "modules_to_save" in name:
                parameter.add_(0.1)
    model.save_pretrained(folder / "adapter")
    file = folder / "adapter/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "base_model_name_or_path": "../base"}))
    model.merge_and_unload().save_pretrained(folder / "want")
