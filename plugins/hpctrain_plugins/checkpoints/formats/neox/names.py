"""What GPT-NeoX calls its tensors, in three generations, and how each is split over ranks."""

from __future__ import annotations

import attrs

COLUMN, ROW, REPLICATED, ROW_BIAS, QKV, GATED = "column", "row", "same", "row-bias", "qkv", "gated"
"""Rows over ranks; columns over ranks; a copy each; a bias after the reduction; two fusions."""

ALIASES = {
    "mlp.linear1.weight": "mlp.dense_h_to_4h.weight",
    "mlp.linear1.bias": "mlp.dense_h_to_4h.bias",
    "mlp.linear2.weight": "mlp.dense_4h_to_h.weight",
    "mlp.linear2.bias": "mlp.dense_4h_to_h.bias",
}
"""The current naming -> the first one."""

TE_ALIASES = {
    "mlp.fc1_weight": "mlp.dense_h_to_4h.weight",
    "mlp.fc1_bias": "mlp.dense_h_to_4h.bias",
    "mlp.fc2_weight": "mlp.dense_4h_to_h.weight",
    "mlp.fc2_bias": "mlp.dense_4h_to_h.bias",
    "mlp.layer_norm_weight": "post_attention_layernorm.weight",
    "mlp.layer_norm_bias": "post_attention_layernorm.bias",
    "attention.qkv.weight": "attention.query_key_value.weight",
    "attention.qkv.bias": "attention.query_key_value.bias",
    "attention.proj.weight": "attention.dense.weight",
    "attention.proj.bias": "attention.dense.bias",
}
"""The naming of TransformerEngine -> the first one; its modules are switched on one by one."""

DROPPED = (
    ("_extra_state", "TransformerEngine's own state, made anew"),
    ("rotary_emb.inv_freq", "computed from the configuration"),
)
"""Endings of names that carry no weights."""


@attrs.frozen
class Rule:
    """One tensor of a layer: its Hugging Face names and how ranks split it."""

    kind: str
    hf: tuple[str, ...]


def _rule(kind: str, *hf: str) -> Rule:
    return Rule(kind, hf)


NEOX = {
    "input_layernorm.weight": _rule(REPLICATED, "input_layernorm.weight"),
    "input_layernorm.bias": _rule(REPLICATED, "input_layernorm.bias"),
    "post_attention_layernorm.weight": _rule(REPLICATED, "post_attention_layernorm.weight"),
    "post_attention_layernorm.bias": _rule(REPLICATED, "post_attention_layernorm.bias"),
    "attention.query_key_value.weight": _rule(COLUMN, "attention.query_key_value.weight"),
    "attention.query_key_value.bias": _rule(COLUMN, "attention.query_key_value.bias"),
    "attention.dense.weight": _rule(ROW, "attention.dense.weight"),
    "attention.dense.bias": _rule(ROW_BIAS, "attention.dense.bias"),
    "mlp.dense_h_to_4h.weight": _rule(COLUMN, "mlp.dense_h_to_4h.weight"),
    "mlp.dense_h_to_4h.bias": _rule(COLUMN, "mlp.dense_h_to_4h.bias"),
    "mlp.dense_4h_to_h.weight": _rule(ROW, "mlp.dense_4h_to_h.weight"),
    "mlp.dense_4h_to_h.bias": _rule(ROW_BIAS, "mlp.dense_4h_to_h.bias"),
}

_ATTENTION = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")

LLAMA = {
    "input_layernorm.scale": _rule(REPLICATED, "input_layernorm.weight"),
    "post_attention_layernorm.scale": _rule(REPLICATED, "post_attention_layernorm.weight"),
    "attention.query_key_value.weight": _rule(QKV, *(f"{n}.weight" for n in _ATTENTION)),
    "attention.query_key_value.bias": _rule(QKV, *(f"{n}.bias" for n in _ATTENTION)),
    "attention.dense.weight": _rule(ROW, "self_attn.o_proj.weight"),
    "attention.dense.bias": _rule(ROW_BIAS, "self_attn.o_proj.bias"),
    "mlp.linear1.weight": _rule(GATED, "mlp.up_proj.weight", "mlp.gate_proj.weight"),
    "mlp.linear1.bias": _rule(GATED, "mlp.up_proj.bias", "mlp.gate_proj.bias"),
    "mlp.linear2.weight": _rule(ROW, "mlp.down_proj.weight"),
    "mlp.linear2.bias": _rule(ROW_BIAS, "mlp.down_proj.bias"),
}

LLAMA_LEGACY = {
    "mlp.w1.weight": _rule(COLUMN, "mlp.gate_proj.weight"),
    "mlp.w3.weight": _rule(COLUMN, "mlp.up_proj.weight"),
    "mlp.w2.weight": _rule(ROW, "mlp.down_proj.weight"),
}


@attrs.frozen
class Architecture:
    """The tensors of one family, in a layer and around the layers."""

    layer: dict[str, Rule]
    prefix: str
    embedding: str
    norm: dict[str, str]
    head: str

    def layer_name(self, index: int, name: str) -> str:
        """The full Hugging Face name of a tensor of one layer."""
        return f"{self.prefix}.{index}.{name}"


GPT_NEOX = Architecture(
    layer=NEOX,
    prefix="gpt_neox.layers",
    embedding="gpt_neox.embed_in.weight",
    norm={
        "norm.weight": "gpt_neox.final_layer_norm.weight",
        "norm.bias": "gpt_neox.final_layer_norm.bias",
    },
    head="embed_out.weight",
)
LLAMA_LIKE = Architecture(
    layer={**LLAMA, **LLAMA_LEGACY},
    prefix="model.layers",
    embedding="model.embed_tokens.weight",
    norm={"norm.scale": "model.norm.weight"},
    head="lm_head.weight",
)


def canonical(name: str, arch: Architecture) -> str:
    """A layer's tensor name in the words of the tables above."""
    if arch is GPT_NEOX:
        return ALIASES.get(name) or TE_ALIASES.get(name, name)
    return name


def written(name: str, naming: str) -> str:
    """The inverse: what a GPT-NeoX layer calls this tensor under `naming`."""
    if naming == "legacy":
        return name
    table = TE_ALIASES if naming == "te" else ALIASES
    return next((alias for alias, first in table.items() if first == name), name)
