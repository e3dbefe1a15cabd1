"""Real DeepSpeed on CPU ranks: trains a step, saves, and lets its own script put fp32 together.

The argument is JSON: name -> [DIR, SPEC] with SPEC stage, kind (plain, odd, lora), world.
Below DIR: ckpt/ as DeepSpeed saved it, want.safetensors from its own script.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import os
import sys
from pathlib import Path

import deepspeed
import torch
from ranks import start


class Odd(torch.nn.Module):
    """Tied weights, a frozen layer, a buffer, and sizes that no world divides."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(37, 13)
        self.first = torch.nn.Linear(13, 29)
        self.frozen = torch.nn.Linear(29, 13)
        self.head = torch.nn.Linear(13, 37, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("count", torch.arange(5))
        self.register_buffer("scale", torch.linspace(0, 1, 7))
        for p in self.frozen.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.head(self.frozen(torch.tanh(self.first(self.embed(x))))).float().square().mean()


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(17, 17) for _ in range(4)])
        self.embed = torch.nn.Embedding(19, 17)

    def forward(self, x):
        y = self.embed(x)
        for layer in self.layers:
            y = torch.tanh(layer(y))
        return y.float().square().mean()


def lora(folder):
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    base = LlamaForCausalLM(config).bfloat16()
    if os.environ["RANK"] == "0" and not (folder / "base").exists():
        base.save_pretrained(folder / "base")
    adapter = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    model = get_peft_model(base, adapter, autocast_adapter_dtype=False)
    model.peft_config["default"].base_model_name_or_path = str(folder / "base")
    return model


class Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


def train(rank, folder, spec):
    torch.manual_seed(1)
    kind = spec["kind"]
    model = lora(folder) if kind.startswith("lora") else {"odd": Odd, "plain": Plain}[kind]()
    groups = [p for p in model.parameters() if p.requires_grad]
    half = len(groups) // 2
    optimizer = torch.optim.AdamW(
        [{"params": groups[:half]}, {"params": groups[half:], "weight_decay": 0.0}], lr=1e-2
    )
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "bf16": {"enabled": True},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {
            "stage": spec["stage"], "sub_group_size": 300, "stage3_param_persistence_threshold": 0,
            **spec.get("zero", {}),
        },
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for step in range(2):
        torch.manual_seed(100 * rank + step)
        tokens = torch.randint(0, 19, (2, 6))
        loss = engine(input_ids=tokens, labels=tokens).loss if kind.startswith("lora") else engine(tokens)
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint(str(folder / "ckpt"), exclude_frozen_parameters=kind == "lora-only")
    if rank == 0 and kind.startswith("lora"):
        model.peft_config["default"].save_pretrained(folder / "ckpt")


def collect(folder, spec):
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    from safetensors.torch import save_file

    if spec["kind"].startswith("lora"):
        state = get_fp32_state_dict_from_zero_checkpoint(str(folder / "ckpt"))
        os.environ["RANK"] = "1"
        model = lora(folder)
        known = {k: v.float() for k, v in state.items() if ".lora_" in k}
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.data = known.pop(name)
        assert not known
        merged = model.merge_and_unload()
        want = dict(merged.state_dict())
    else:
        want = get_fp32_state_dict_from_zero_checkpoint(str(folder / "ckpt"))
    save_file({k: v.clone().contiguous() for k, v in want.items()}, folder / "want.safetensors")


if __name__ == "__main__":
    for place, spec in json.loads(sys.argv[1]).values():
        start(train, spec["world"], Path(place), spec)
        collect(Path(place), spec)
