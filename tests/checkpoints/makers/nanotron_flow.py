"""nanotron's own flow through its shards in float64, against transformers: name -> [DIR, HF].

The shards are put together by the slices they carry, the fused projections are split as nanotron
splits them, and rotary pairs are turned in nanotron's order.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from torch.nn.functional import scaled_dot_product_attention, silu


def sliced(text):
    numbers = (None if n == "None" else int(n) for n in text.split(","))
    return slice(*numbers)


def weights(step):
    """Every tensor whole: full[global] = shard[local]."""
    out = {}
    for path in sorted((step / "model").rglob("*.safetensors")):
        leaf = path.name.removesuffix(".safetensors").split("_pp-rank")[0].removeprefix("model_")
        name = ".".join([*path.parent.relative_to(step / "model").parts, leaf])
        with safe_open(path, "pt") as file:
            data, said = file.get_tensor("data").double(), file.metadata() or {}
        if "unsharded_shape" not in said:
            out[name] = data
            continue
        shape = tuple(int(n) for n in said["unsharded_shape"].strip("()").split(",") if n)
        full = out.setdefault(name, torch.full(shape, float("nan"), dtype=torch.float64))
        for pair in said["local_global_slices_pairs"].split(";"):
            local, whole = (tuple(map(sliced, s.split("|"))) for s in pair.split("#"))
            full[whole] = data[local]
    return out


def rotate(x, theta, interleaved):
    size = x.shape[-1]
    freq = 1.0 / (theta ** (torch.arange(0, size, 2).double() / size))
    angle = torch.outer(torch.arange(x.shape[1]).double(), freq)
    if interleaved:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def flow(w, config, tokens):
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    size = config["hidden_size"] // heads
    eps = config["rms_norm_eps"]

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w[f"{name}.weight"]

    x = w["model.token_position_embeddings.pp_block.token_embedding.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        p = f"model.decoder.{i}.pp_block"
        fused = norm(x, f"{p}.input_layernorm") @ w[f"{p}.attn.qkv_proj.weight"].T
        parts = fused.split((heads * size, kv * size, kv * size), -1)
        q, k, v = (t.view(len(tokens), -1, size).transpose(0, 1) for t in parts)
        q, k = (rotate(t, config["rope_theta"], config["rope_interleaved"]) for t in (q, k))
        k, v = (t.repeat_interleave(heads // kv, 0) for t in (k, v))
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + out.transpose(0, 1).flatten(1) @ w[f"{p}.attn.o_proj.weight"].T
        hidden = norm(x, f"{p}.post_attention_layernorm") @ w[f"{p}.mlp.gate_up_proj.weight"].T
        gate, up = hidden.chunk(2, -1)
        x = x + (silu(gate) * up) @ w[f"{p}.mlp.down_proj.weight"].T
    x = norm(x, "model.final_layer_norm.pp_block")
    tied = config["tie_word_embeddings"]
    embedding = "model.token_position_embeddings.pp_block.token_embedding.weight"
    return x @ w[embedding if tied else "model.lm_head.pp_block.weight"].T


def compare(folder, hf):
    from transformers import AutoModelForCausalLM

    step = Path(folder) / (Path(folder) / "latest.txt").read_text()
    config = json.loads((step / "model_config.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(hf, dtype=torch.float64, attn_implementation="eager")
    tokens = torch.randint(0, 150, (17,), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        want = model(tokens[None]).logits[0]
        have = flow(weights(step), config, tokens)[:, : want.shape[-1]]
    return (want - have).abs().max().item() / want.abs().max().item()


print(json.dumps({name: compare(*job) for name, job in json.loads(sys.argv[1]).items()}))
