"""A GPT-NeoX checkpoint as the trainer writes it, and the trainer's own flow through its ranks.

`make` writes random weights for [DIR, SPEC]; `logits` of [DIR, SPEC, HF] runs the shards rank by
rank in float64 (column-parallel, row-parallel, one or two reductions) and compares the result with
transformers on HF. The second argument is JSON, name -> job.
SPEC: family, parallel, tied, tp, naming, layout, order, heads, kv, dtype.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import torch
import yaml
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention, silu

H, LAYERS, VOCAB, INNER, POSITIONS = 64, 3, 256, 128, 64
NAMES = {
    "legacy": {},
    "new": {"mlp.dense_h_to_4h.": "mlp.linear1.", "mlp.dense_4h_to_h.": "mlp.linear2."},
    "te": {
        "mlp.dense_h_to_4h.": "mlp.fc1_",
        "mlp.dense_4h_to_h.": "mlp.fc2_",
        "post_attention_layernorm.": "mlp.layer_norm_",
        "attention.query_key_value.": "attention.qkv.",
        "attention.dense.": "attention.proj.",
    },
}


def renamed(name, spec):
    for old, new in NAMES[spec["naming"]].items():
        if spec["family"] == "neox" and name.startswith(old):
            return new + name[len(old) :]
    return name


def fill(spec, own, new):
    """What one rank of a layer holds beside its replicated tensors."""
    tp, size = spec["tp"], H // spec["heads"]
    rows = (spec["heads"] + 2 * spec["kv"]) * size // tp
    out = {"attention.query_key_value.weight": new(rows, H)}
    out["attention.dense.weight"] = new(H, H // tp)
    if spec["naming"] == "te":
        out["attention.qkv._extra_state"] = None
    if spec["family"] == "neox":
        out["attention.query_key_value.bias"] = new(rows)
        out["mlp.dense_h_to_4h.weight"] = new(INNER // tp, H)
        out["mlp.dense_h_to_4h.bias"] = new(INNER // tp)
        out["mlp.dense_4h_to_h.weight"] = new(H, INNER // tp)
        if spec["parallel"]:
            out |= {"attention.dense.bias": new(H), "mlp.dense_4h_to_h.bias": new(H)}
        return out
    del own["attention.dense.bias"], own["mlp.dense_4h_to_h.bias"]
    if spec["naming"] == "legacy":
        up = {"mlp.w1.weight": new(INNER // tp, H), "mlp.w3.weight": new(INNER // tp, H)}
        return {**out, **up, "mlp.w2.weight": new(H, INNER // tp)}
    return {
        **out,
        "mlp.linear1.weight": new(2 * INNER // tp, H),
        "mlp.linear2.weight": new(H, INNER // tp),
    }


def ranks_of(spec):
    """[{layer: {name: tensor}}] per rank, as the trainer's modules hold them."""
    g = torch.Generator().manual_seed(3)
    tp = spec["tp"]
    dtype = getattr(torch, spec["dtype"])

    def new(*shape, mean=0.0):
        return (torch.randn(*shape, generator=g) * 0.2 + mean).to(dtype)

    shared = {}
    norm = ("weight", "bias") if spec["family"] == "neox" else ("scale",)
    for layer in range(2, LAYERS + 2):
        for name in ("input_layernorm", "post_attention_layernorm"):
            for part in norm:
                shared[layer, f"{name}.{part}"] = new(H, mean=0.0 if part == "bias" else 1.0)
        for name in ("attention.dense.bias", "mlp.dense_4h_to_h.bias"):
            shared[layer, name] = new(H)
    for part in norm:
        shared[LAYERS + 3, f"norm.{part}"] = new(H, mean=0.0 if part == "bias" else 1.0)
    out = []
    for _ in range(tp):
        rank = {0: {"word_embeddings.weight": new(VOCAB // tp, H)}}
        for layer in range(2, LAYERS + 2):
            own = {k[1]: v for k, v in shared.items() if k[0] == layer}
            own.update(fill(spec, own, new))
            rank[layer] = {renamed(k, spec): v for k, v in own.items()}
        rank[LAYERS + 3] = {k[1]: v for k, v in shared.items() if k[0] == LAYERS + 3}
        if not spec["tied"]:
            rank[LAYERS + 4] = {"final_linear.weight": new(VOCAB // tp, H)}
        out.append(rank)
    return out


def make(folder, spec):
    folder = Path(folder)
    step = folder / "global_step12"
    (step / "configs").mkdir(parents=True)
    (folder / "latest").write_text("global_step12")
    neox = spec["family"] == "neox"
    config = {
        "num-layers": LAYERS,
        "hidden-size": H,
        "num-attention-heads": spec["heads"],
        "max-position-embeddings": POSITIONS,
        "norm": "layernorm" if neox else "rmsnorm",
        "layernorm-epsilon" if neox else "rms-norm-epsilon": 1e-5,
        "pos-emb": "rotary",
        "rotary-pct": 0.5 if neox else 1.0,
        "no-weight-tying": not spec["tied"],
        "gpt-j-residual": spec["parallel"],
        "model-parallel-size": spec["tp"],
        "activation": "gelu" if neox else ("silu" if spec["naming"] == "legacy" else "swiglu"),
    }
    if not neox:
        config["num-kv-heads"] = spec["kv"]
    (step / "configs/run.yml").write_text("# a comment\n" + yaml.safe_dump(config))
    for r, rank in enumerate(ranks_of(spec)):
        state = {"iteration": 12, "dp_world_size": 1, "mp_world_size": spec["tp"], "optimizer": {}}
        if spec["layout"] == "pipelined":
            for layer, tensors in rank.items():
                torch.save(tensors, step / f"layer_{layer:02d}-model_{r:02d}-model_states.pt")
            state["module"] = None
        else:
            named = "sequential.{}.{}" if spec["layout"] == "sequential" else "{}.{}"
            flat = {named.format(layer, k): v for layer, ts in rank.items() for k, v in ts.items()}
            state["module"] = flat if spec["layout"] == "sequential" else {"module": flat}
        torch.save(state, step / f"mp_rank_{r:02d}_model_states.pt")


def shards(folder, spec):
    """Read back what lies in the folder, as plain dictionaries per rank."""
    step = Path(folder) / (Path(folder) / "latest").read_text().strip()
    back = {new: old for old, new in NAMES[spec["naming"]].items()}
    out = []
    for r in range(spec["tp"]):
        found = {}
        if spec["layout"] == "pipelined":
            for path in step.glob(f"layer_*-model_{r:02d}-model_states.pt"):
                layer = int(path.name.split("-")[0].split("_")[1])
                found.update({(layer, k): v for k, v in torch.load(path, weights_only=True).items()})
        else:
            module = torch.load(step / f"mp_rank_{r:02d}_model_states.pt", weights_only=True)["module"]
            module = module.get("module", module)
            for key, value in module.items():
                layer, name = key.removeprefix("sequential.").split(".", 1)
                found[int(layer), name] = value
        if spec["family"] == "neox":
            for (layer, name), value in list(found.items()):
                for new, old in back.items():
                    if name.startswith(new) and not name.endswith("_extra_state"):
                        found[layer, old + name[len(new) :]] = value
        out.append({k: v.double() for k, v in found.items() if v is not None})
    return out


def rotate(x, rotary):
    """[heads, time, size] with the first `rotary` dimensions turned, in two halves."""
    t = torch.arange(x.shape[1]).double()
    freq = 1.0 / (10000 ** (torch.arange(0, rotary, 2).double() / rotary))
    angle = torch.outer(t, freq).repeat(1, 2)
    part, rest = x[..., :rotary], x[..., rotary:]
    a, b = part.chunk(2, -1)
    return torch.cat((part * angle.cos() + torch.cat((-b, a), -1) * angle.sin(), rest), -1)


def attention(rank, layer, x, spec):
    tp, size = spec["tp"], H // spec["heads"]
    heads, kv = spec["heads"] // tp, spec["kv"] // tp
    fused = x @ rank[layer, "attention.query_key_value.weight"].T
    fused = fused + rank.get((layer, "attention.query_key_value.bias"), 0)
    time = x.shape[0]
    if heads == kv or spec["order"] == "per-head":
        share = size * kv // heads
        q, k, v = fused.view(time, heads, -1).split((size, share, share), -1)
    else:
        q, k, v = fused.split((heads * size, kv * size, kv * size), -1)
    q, k, v = (t.reshape(time, -1, size).transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(heads // kv, 0) for t in (k, v))
    rotary = size // 2 if spec["family"] == "neox" else size
    out = scaled_dot_product_attention(rotate(q, rotary), rotate(k, rotary), v, is_causal=True)
    out = out.transpose(0, 1).reshape(time, -1)
    return out @ rank[layer, "attention.dense.weight"].T


def mlp(rank, layer, x, spec):
    if spec["family"] == "neox":
        up = x @ rank[layer, "mlp.dense_h_to_4h.weight"].T + rank[layer, "mlp.dense_h_to_4h.bias"]
        return gelu(up) @ rank[layer, "mlp.dense_4h_to_h.weight"].T
    if (layer, "mlp.w1.weight") in rank:
        gate, up = x @ rank[layer, "mlp.w1.weight"].T, x @ rank[layer, "mlp.w3.weight"].T
        return (silu(gate) * up) @ rank[layer, "mlp.w2.weight"].T
    up, gate = (x @ rank[layer, "mlp.linear1.weight"].T).chunk(2, -1)
    return (silu(gate) * up) @ rank[layer, "mlp.linear2.weight"].T


def norm(rank, layer, name, x):
    if (layer, f"{name}.scale") in rank:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * rank[layer, f"{name}.scale"]
    return layer_norm(x, (H,), rank[layer, f"{name}.weight"], rank[layer, f"{name}.bias"], 1e-5)


def flow(ranks, tokens, spec):
    first = ranks[0]
    x = torch.cat([r[0, "word_embeddings.weight"] for r in ranks])[tokens]
    for layer in range(2, LAYERS + 2):
        a = norm(first, layer, "input_layernorm", x)
        if spec["parallel"]:
            b = norm(first, layer, "post_attention_layernorm", x)
            parts = [
                attention(r, layer, a, spec)
                + r[layer, "attention.dense.bias"]
                + mlp(r, layer, b, spec)
                + r[layer, "mlp.dense_4h_to_h.bias"]
                for r in ranks
            ]
            x = x + sum(parts)
            continue
        x = x + sum(attention(r, layer, a, spec) for r in ranks)
        x = x + first.get((layer, "attention.dense.bias"), 0)
        b = norm(first, layer, "post_attention_layernorm", x)
        x = x + sum(mlp(r, layer, b, spec) for r in ranks) + first.get((layer, "mlp.dense_4h_to_h.bias"), 0)
    x = norm(first, LAYERS + 3, "norm", x)
    layer, name = (0, "word_embeddings.weight") if spec["tied"] else (LAYERS + 4, "final_linear.weight")
    return x @ torch.cat([r[layer, name] for r in ranks]).T


def logits(folder, spec, hf):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(hf, dtype=torch.float64, attn_implementation="eager")
    tokens = torch.randint(0, VOCAB, (17,), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        want = model(tokens[None]).logits[0]
        have = flow(shards(folder, spec), tokens, spec)
    return {"error": (want - have).abs().max().item(), "scale": want.abs().max().item()}


if __name__ == "__main__":
    do = {"make": make, "logits": logits}[sys.argv[1]]
    print(json.dumps({name: do(*job) for name, job in json.loads(sys.argv[2]).items()}))
