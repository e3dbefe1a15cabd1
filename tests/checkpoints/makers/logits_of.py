"""The logits of transformers in float64: name -> [FOLDER, tokens]."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys

import torch
from transformers import AutoModelForCausalLM


def logits(folder, tokens):
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}  # the only ways in float64
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, **eager)
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].tolist()


print(json.dumps({name: logits(*job) for name, job in json.loads(sys.argv[1]).items()}))
