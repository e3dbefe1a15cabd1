"""Adapters on embedding or head that peft saved, and logits: `make` or `errors`, JSON, name -> [DIR, SPEC].

Below DIR: base/, adapter/, live.pt with the logits of the live model, which `errors` compares out/ with.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

IDS = torch.arange(20)[None]


def make(folder, tied=False, added=0, **settings):
    torch.manual_seed(4)
    config = LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=tied,
    )  # fmt: skip
    base = LlamaForCausalLM(config)
    base.save_pretrained(folder / "base")
    if added:
        base.resize_token_embeddings(96 + added, mean_resizing=False)
    model = get_peft_model(base, LoraConfig(init_lora_weights=False, r=4, **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "modules_to_save" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
        torch.save(model(input_ids=IDS).logits, folder / "live.pt")
    model.save_pretrained(folder / "adapter", save_embedding_layers=True if added else "auto")
    file = folder / "adapter/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "base_model_name_or_path": "../base"}))


def error(folder):
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(folder / "out").eval()(input_ids=IDS).logits
    live = torch.load(folder / "live.pt")
    return float((logits - live).abs().max() / live.abs().max())


jobs = {name: (Path(place), spec) for name, (place, spec) in json.loads(sys.argv[2]).items()}
if sys.argv[1] == "make":
    for place, spec in jobs.values():
        make(place, **spec)
else:
    print(json.dumps({name: error(place) for name, (place, _) in jobs.items()}))
