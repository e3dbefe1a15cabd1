"""Small models in the words of Hugging Face, with seeded numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from tests.checkpoints.conftest import random_tensors, write_safetensors

GPT_NEOX: dict[str, Any] = {
    "architectures": ["GPTNeoXForCausalLM"],
    "model_type": "gpt_neox",
    "vocab_size": 160,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "rotary_pct": 0.5,
    "rotary_emb_base": 10000,
    "use_parallel_residual": False,
    "layer_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "hidden_act": "gelu",
    "attention_bias": True,
    "initializer_range": 0.02,
}
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 160,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "rope_theta": 10000,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "initializer_range": 0.02,
}


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every tensor of the model."""
    h, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    out: dict[str, tuple[int, ...]] = {}
    neox = config["model_type"] == "gpt_neox"
    out["gpt_neox.embed_in.weight" if neox else "model.embed_tokens.weight"] = (vocab, h)
    for i in range(config["num_hidden_layers"]):
        if neox:
            p = f"gpt_neox.layers.{i}"
            for norm in ("input_layernorm", "post_attention_layernorm"):
                out |= {f"{p}.{norm}.weight": (h,), f"{p}.{norm}.bias": (h,)}
            out |= {f"{p}.attention.query_key_value.weight": (3 * h, h)}
            out |= {f"{p}.attention.query_key_value.bias": (3 * h,)}
            out |= {f"{p}.attention.dense.weight": (h, h), f"{p}.attention.dense.bias": (h,)}
            out |= {
                f"{p}.mlp.dense_h_to_4h.weight": (inner, h),
                f"{p}.mlp.dense_h_to_4h.bias": (inner,),
            }
            out |= {
                f"{p}.mlp.dense_4h_to_h.weight": (h, inner),
                f"{p}.mlp.dense_4h_to_h.bias": (h,),
            }
        else:
            p = f"model.layers.{i}"
            kv = h // config["num_attention_heads"] * config["num_key_value_heads"]
            out |= {
                f"{p}.input_layernorm.weight": (h,),
                f"{p}.post_attention_layernorm.weight": (h,),
            }
            out |= {f"{p}.self_attn.q_proj.weight": (h, h), f"{p}.self_attn.o_proj.weight": (h, h)}
            out |= {
                f"{p}.self_attn.k_proj.weight": (kv, h),
                f"{p}.self_attn.v_proj.weight": (kv, h),
            }
            out |= {f"{p}.mlp.gate_proj.weight": (inner, h), f"{p}.mlp.up_proj.weight": (inner, h)}
            out |= {f"{p}.mlp.down_proj.weight": (h, inner)}
    if neox:
        out |= {f"gpt_neox.final_layer_norm.{k}": (h,) for k in ("weight", "bias")}
    else:
        out["model.norm.weight"] = (h,)
    if not config["tie_word_embeddings"]:
        out["embed_out.weight" if neox else "lm_head.weight"] = (vocab, h)
    return out


def make(folder: Path, config: dict[str, Any], dtype: str = "BF16", sigma: float = 0.02) -> Path:
    """A folder as `save_pretrained` writes it."""
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", random_tensors(0, dtype, shapes(config), sigma))
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    return folder


def make_family(folder: Path, config: dict[str, Any]) -> Path:
    """A model of any family that has a table of its tensors."""
    folder.mkdir()
    family = FAMILIES[config["model_type"]]
    named = {n: s for n, s in family.outer(config, headless=False).items() if s}
    if config["tie_word_embeddings"]:
        named.pop(family.head)
    for layer in range(config["num_hidden_layers"]):
        named |= {f"{family.prefix}layers.{layer}.{n}": s for n, s in family.of_layer(config).items()}
    write_safetensors(folder / "model.safetensors", random_tensors(0, "BF16", named))
    (folder / "config.json").write_text(json.dumps(config))
    return folder
