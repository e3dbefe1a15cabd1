"""Quantised Llamas with torch's own narrow types, in files of the safetensors library: argument DIR.

Below DIR: fp8/ with block scales as DeepSeek publishes, mxfp4/ with two numbers to a byte and E8M0 scales.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )
).bfloat16()  # fmt: skip


def fp8(weight):
    scale = weight.float().abs().amax() / 448
    return {"": (weight.float() / scale).to(torch.float8_e4m3fn), "_scale_inv": scale.reshape(1, 1)}


def mxfp4(weight):
    numbers = torch.randint(0, 256, (weight.shape[0], weight.shape[1] // 2), dtype=torch.uint8)
    scale = torch.randint(100, 140, (weight.shape[0], weight.shape[1] // 32), dtype=torch.uint8)
    return {"": numbers.view(torch.float4_e2m1fn_x2), "_scale": scale.view(torch.float8_e8m0fnu)}


for method in (fp8, mxfp4):
    folder = Path(sys.argv[1]) / method.__name__
    model.config.quantization_config = {"quant_method": method.__name__}
    model.config.save_pretrained(folder)
    tensors = {}
    for name, weight in model.state_dict().items():
        quantised = "layers.0" in name and "_proj" in name  # the second layer stays as it was
        parts = method(weight) if quantised else {"": weight}
        tensors |= {name + ending: tensor.contiguous() for ending, tensor in parts.items()}
    save_file(tensors, folder / "model.safetensors")
