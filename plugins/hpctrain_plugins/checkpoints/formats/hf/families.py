"""The tensors of the families: a table of names and sizes each, which are read with a configuration.

A size is a word of `_sizes`; `… if SETTING` is there only where the configuration sets it. In a name
`{e}` stands for the number of an expert. What the tables say is what transformers itself saves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs

Shapes: TypeAlias = "dict[str, tuple[int, ...]]"
Table: TypeAlias = Mapping[str, str]

_ATTENTION = {
    "self_attn.q_proj.weight": "query hidden",
    "self_attn.k_proj.weight": "key hidden",
    "self_attn.v_proj.weight": "key hidden",
    "self_attn.o_proj.weight": "hidden query",
}
_QKV_BIAS = {f"self_attn.{n}_proj.bias": s for n, s in (("q", "query"), ("k", "key"), ("v", "key"))}
_QKV_BIAS_IF = {name: f"{size} if attention_bias" for name, size in _QKV_BIAS.items()}
_O_BIAS_IF = {"self_attn.o_proj.bias": "hidden if attention_bias"}
_BIAS_IF = {**_QKV_BIAS_IF, **_O_BIAS_IF}
_HEAD_NORMS = {"self_attn.q_norm.weight": "head", "self_attn.k_norm.weight": "head"}
_ROW_NORMS = {"self_attn.q_norm.weight": "query", "self_attn.k_norm.weight": "key"}
_UP_DOWN = {"mlp.up_proj.weight": "inner hidden", "mlp.down_proj.weight": "hidden inner"}
_GATED = {"mlp.gate_proj.weight": "inner hidden", **_UP_DOWN}
_UP_DOWN_BIAS_IF = {"mlp.up_proj.bias": "inner if mlp_bias", "mlp.down_proj.bias": "hidden if mlp_bias"}
_GATED_BIAS_IF = {"mlp.gate_proj.bias": "inner if mlp_bias", **_UP_DOWN_BIAS_IF}
_EXPERTS = {
    "mlp.gate.weight": "experts hidden",
    "mlp.experts.{e}.gate_proj.weight": "expert hidden",
    "mlp.experts.{e}.up_proj.weight": "expert hidden",
    "mlp.experts.{e}.down_proj.weight": "hidden expert",
}
_NORMS = {"input_layernorm.weight": "hidden", "post_attention_layernorm.weight": "hidden"}
_LATE_NORMS = {"post_attention_layernorm.weight": "hidden", "post_feedforward_layernorm.weight": "hidden"}
_FOUR_NORMS = {**_NORMS, **_LATE_NORMS, "pre_feedforward_layernorm.weight": "hidden"}

_LLAMA_LAYER = {**_NORMS, **_ATTENTION, **_GATED, **_BIAS_IF, **_GATED_BIAS_IF}
_QWEN3_LAYER = {**_NORMS, **_ATTENTION, **_HEAD_NORMS, **_BIAS_IF}
_GEMMA2_LAYER = {**_FOUR_NORMS, **_ATTENTION, **_GATED, **_BIAS_IF}
_OLMO2_LAYER = {**_LATE_NORMS, **_ATTENTION, **_ROW_NORMS, **_GATED, **_BIAS_IF}
_PHI3_LAYER = {
    **_NORMS,
    "self_attn.qkv_proj.weight": "fused hidden",
    "self_attn.o_proj.weight": "hidden query",
    "mlp.gate_up_proj.weight": "both hidden",
    "mlp.down_proj.weight": "hidden inner",
}
_MIXTRAL_LAYER = {
    **_NORMS,
    **_ATTENTION,
    "block_sparse_moe.gate.weight": "experts hidden",
    "block_sparse_moe.experts.{e}.w1.weight": "inner hidden",
    "block_sparse_moe.experts.{e}.w2.weight": "hidden inner",
    "block_sparse_moe.experts.{e}.w3.weight": "inner hidden",
}
_OLMOE_EXPERTS = {name: size.replace("expert ", "inner ") for name, size in _EXPERTS.items()}
_OLMOE_EXPERTS["mlp.experts.{e}.down_proj.weight"] = "hidden inner"
_NEOX_LAYER = {
    "input_layernorm.weight": "hidden",
    "input_layernorm.bias": "hidden",
    "attention.query_key_value.weight": "fused hidden",
    "attention.query_key_value.bias": "fused if attention_bias",
    "attention.dense.weight": "hidden query",
    "attention.dense.bias": "hidden if attention_bias",
    "post_attention_layernorm.weight": "hidden",
    "post_attention_layernorm.bias": "hidden",
    "mlp.dense_h_to_4h.weight": "inner hidden",
    "mlp.dense_h_to_4h.bias": "inner",
    "mlp.dense_4h_to_h.weight": "hidden inner",
    "mlp.dense_4h_to_h.bias": "hidden",
}


@attrs.frozen
class Family:
    """What a family's models hold, and what their configuration means where it is silent."""

    layer: Table
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Settings as transformers takes them when a configuration lacks them."""
    prefix: str = "model."
    embedding: str = "embed_tokens.weight"
    norm: Table = attrs.field(factory=lambda: {"norm.weight": "hidden"})
    head: str = "lm_head.weight"
    even: Table = attrs.field(factory=dict)
    """Settings with the value at which all layers are alike; at others nothing is expected."""

    def outer(self, config: Mapping[str, Any], *, headless: bool) -> dict[str, tuple[int, ...] | None]:
        """Embedding, last norm and head; None where the configuration does not say a size."""
        prefix = "" if headless else self.prefix
        table = {self.embedding: "vocab hidden", **self.norm}
        out = {prefix + name: shape for name, shape in self._shaped(table, config)}
        if not headless:
            out |= dict(self._shaped({self.head: "vocab hidden"}, config))
        return out

    def of_layer(self, config: Mapping[str, Any]) -> Shapes:
        """Every tensor of a layer; empty where the configuration does not say all sizes."""
        settings = {**self.defaults, **config}
        if any(str(settings.get(key, value)) != value for key, value in self.even.items()):
            return {}
        shapes = dict(self._shaped(self.layer, config))
        complete = {name: shape for name, shape in shapes.items() if shape is not None}
        return complete if len(complete) == len(shapes) else {}

    def is_tied(self, config: Mapping[str, Any]) -> bool:
        """Whether the head is the embedding."""
        return bool({**self.defaults, **config}.get("tie_word_embeddings", False))

    def _shaped(
        self, table: Table, config: Mapping[str, Any]
    ) -> Iterator[tuple[str, tuple[int, ...] | None]]:
        settings = {**self.defaults, **config}
        sizes = _sizes(settings)
        for name, text in table.items():
            words, _, setting = text.partition(" if ")
            if setting and not settings.get(setting):
                continue
            lengths = [sizes[word] for word in words.split() if word in sizes]
            shape = tuple(lengths) if len(lengths) == len(words.split()) else None
            for number in range(sizes.get("experts", 1)) if "{e}" in name else ("",):
                yield name.replace("{e}", str(number)), shape


def _sizes(settings: Mapping[str, Any]) -> dict[str, int]:
    """The sizes by the words of the tables; one that a configuration does not say is left out."""
    keys = {
        "vocab": ("vocab_size",),
        "hidden": ("hidden_size",),
        "inner": ("intermediate_size",),
        "heads": ("num_attention_heads",),
        "groups": ("num_key_value_heads",),
        "head": ("head_dim",),
        "experts": ("num_experts", "num_local_experts"),
        "expert": ("moe_intermediate_size",),
    }
    sizes: dict[str, int] = {}
    for word, names in keys.items():
        for name in names:
            if isinstance(settings.get(name), int):
                sizes.setdefault(word, settings[name])
    if settings.get("num_key_value_heads") is None and settings.get("ungrouped") and "heads" in sizes:
        sizes["groups"] = sizes["heads"]
    if "head" not in sizes and {"hidden", "heads"} <= {*sizes}:
        sizes["head"] = sizes["hidden"] // sizes["heads"]
    if "inner" in sizes:
        sizes["both"] = 2 * sizes["inner"]
    if {"heads", "groups", "head"} <= {*sizes}:
        sizes["query"], sizes["key"] = sizes["heads"] * sizes["head"], sizes["groups"] * sizes["head"]
        sizes["fused"] = sizes["query"] + 2 * sizes["key"]
    return sizes


_UNGROUPED = {"ungrouped": True}
"""Without `num_key_value_heads` each head has its own key and value."""
_TIED = {"tie_word_embeddings": True}

FAMILIES: Mapping[str, Family] = {
    "llama": Family(_LLAMA_LAYER, _UNGROUPED),
    "mistral": Family({**_NORMS, **_ATTENTION, **_GATED}),
    "qwen2": Family({**_NORMS, **_ATTENTION, **_GATED, **_QKV_BIAS}),
    "qwen3": Family({**_QWEN3_LAYER, **_GATED}, {"head_dim": 128}),
    "qwen3_moe": Family(
        {**_QWEN3_LAYER, **_EXPERTS},
        {"head_dim": 128},
        even={"decoder_sparse_step": "1", "mlp_only_layers": "[]"},
    ),
    "gemma": Family({**_NORMS, **_ATTENTION, **_GATED, **_BIAS_IF}, {"head_dim": 256, **_TIED}),
    "gemma2": Family(_GEMMA2_LAYER, {"head_dim": 256, **_TIED}),
    "gemma3_text": Family({**_GEMMA2_LAYER, **_HEAD_NORMS}, {"head_dim": 256, **_TIED}),
    "granite": Family(_LLAMA_LAYER, _UNGROUPED),
    "arcee": Family({**_NORMS, **_ATTENTION, **_UP_DOWN, **_BIAS_IF, **_UP_DOWN_BIAS_IF}, _UNGROUPED),
    "olmo": Family({**_ATTENTION, **_GATED, **_BIAS_IF}, _UNGROUPED, norm={}),
    "olmo2": Family(_OLMO2_LAYER, _UNGROUPED),
    "olmo3": Family(_OLMO2_LAYER, _UNGROUPED),
    "olmoe": Family({**_NORMS, **_ATTENTION, **_ROW_NORMS, **_BIAS_IF, **_OLMOE_EXPERTS}, _UNGROUPED),
    "mixtral": Family(_MIXTRAL_LAYER),
    "phi3": Family(_PHI3_LAYER, _UNGROUPED),
    "smollm3": Family(_LLAMA_LAYER, _TIED),
    "gpt_neox": Family(
        _NEOX_LAYER,
        {"attention_bias": True, **_UNGROUPED},
        prefix="gpt_neox.",
        embedding="embed_in.weight",
        norm={"final_layer_norm.weight": "hidden", "final_layer_norm.bias": "hidden"},
        head="embed_out.weight",
    ),
}
