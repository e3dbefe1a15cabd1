"""Models whose conversions once went wrong unseen, by the real libraries: `make DIR` or `errors DIR`.

`make` writes DIR/neox, DIR/remote, DIR/rope, DIR/base and adapters DIR/adapter-*. `errors` compares the
logits of each folder with those of the folder of its name below DIR/out.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import os
import sys
from pathlib import Path

os.environ["HF_MODULES_CACHE"] = f"{sys.argv[2]}/modules"

import torch
from peft import BOFTConfig, IA3Config, LoHaConfig, LoraConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

SIZES = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64,
}  # fmt: skip
ADAPTERS = {
    "alora": LoraConfig(target_modules=["q_proj"], alora_invocation_tokens=[5, 6]),
    "dora": LoraConfig(target_modules=["q_proj"], use_dora=True),
    "bias": LoraConfig(target_modules=["q_proj"], lora_bias=True),
    "pissa": LoraConfig(target_modules=["q_proj"], init_lora_weights="pissa"),
    "tokens": LoraConfig(target_modules=["q_proj"], trainable_token_indices=[1, 2]),
    "replicated": LoraConfig(target_modules=["q_proj"], layer_replication=[(0, 2), (1, 2)]),
    "ia3": IA3Config(target_modules=["k_proj"], feedforward_modules=[]),
    "loha": LoHaConfig(target_modules=["q_proj"]),
    "boft": BOFTConfig(target_modules=["q_proj"], boft_block_size=4),
}
SCALED = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
}  # fmt: skip


def make(folder):
    torch.manual_seed(0)
    parallel = GPTNeoXConfig(**SIZES, rotary_pct=0.25, use_parallel_residual=True, tie_word_embeddings=True)
    GPTNeoXForCausalLM(parallel).save_pretrained(folder / "neox")
    LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=SCALED)).save_pretrained(folder / "rope")
    base = LlamaForCausalLM(LlamaConfig(**SIZES))
    base.save_pretrained(folder / "base")
    for name, config in ADAPTERS.items():
        copy = LlamaForCausalLM.from_pretrained(folder / "base")
        get_peft_model(copy, config).save_pretrained(folder / f"adapter-{name}")
    base.save_pretrained(folder / "remote")
    file = folder / "remote/config.json"
    table = {"AutoConfig": "configuration_mine.Mine", "AutoModelForCausalLM": "modeling_mine.MineForCausalLM"}
    document = {**json.loads(file.read_text()), "auto_map": table, "model_type": "mine"}
    file.write_text(json.dumps(document | {"architectures": ["MineForCausalLM"]}))
    code = {
        "configuration_mine.py": "from transformers import LlamaConfig\n"
        "class Mine(LlamaConfig):\n    model_type = 'mine'\n",
        "modeling_mine.py": "from transformers import LlamaForCausalLM\n"
        "from .configuration_mine import Mine\nfrom .scale_mine import SCALE\n"
        "class MineForCausalLM(LlamaForCausalLM):\n    config_class = Mine\n"
        "    def forward(self, *args, **named):\n        out = super().forward(*args, **named)\n"
        "        out.logits = SCALE * out.logits\n        return out\n",
        "scale_mine.py": "SCALE = 2\n",
    }
    for name, text in code.items():
        (folder / "remote" / name).write_text(text)


def logits(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.float64)
    with torch.no_grad():
        return model(input_ids=torch.arange(20)[None]).logits


folder = Path(sys.argv[2])
if sys.argv[1] == "make":
    make(folder)
else:
    pairs = {out.name: (logits(folder / out.name), logits(out)) for out in sorted((folder / "out").iterdir())}
    print(json.dumps({name: float((a - b).abs().max() / a.abs().max()) for name, (a, b) in pairs.items()}))
