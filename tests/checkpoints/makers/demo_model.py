"""The demo's model, saved by transformers; or: is the second folder's model the first one's?

usage: demo_model.py make FOLDER CONFIG.json | demo_model.py same ONE OTHER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def make(folder: str, config: str) -> None:
    torch.manual_seed(0)
    settings: dict[str, Any] = json.loads(Path(config).read_text())
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings))
    model.save_pretrained(folder)


def same(one: str, other: str) -> None:
    models = [AutoModelForCausalLM.from_pretrained(folder, local_files_only=True) for folder in (one, other)]
    states = [model.state_dict() for model in models]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    ids = torch.arange(16).reshape(1, 16)
    with torch.no_grad():
        assert torch.equal(*(model(ids).logits for model in models))


if __name__ == "__main__":
    {"make": make, "same": same}[sys.argv[1]](*sys.argv[2:])
