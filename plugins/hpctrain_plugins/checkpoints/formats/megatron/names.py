"""What Megatron-Core calls the tensors of a decoder, and which of Hugging Face's are in each."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

PLAIN, QKV, GATED = "plain", "query, key and value", "gate and up"

EMBEDDING = "embedding.word_embeddings.weight"
NORM = "decoder.final_layernorm.weight"
HEAD = "output_layer.weight"
OUTER = {EMBEDDING: "model.embed_tokens.weight", NORM: "model.norm.weight", HEAD: "lm_head.weight"}

EXPERTS = "mlp.experts.experts."
HALVES = ("weight_w", "weight_v")
"""Gate and up where each is saved by itself (`singleton_local_shards`)."""
EXPERTS_NORM = "pre_mlp_layernorm.weight"
LOCAL_EXPERTS_NORM = "mlp.linear_fc1.layer_norm_weight"
"""The norm in front of experts: of layers of TransformerEngine, and of Megatron's own."""

_LAYER = re.compile(r"decoder\.layers\.(?:(?P<layer>\d+)\.)?(?P<rest>.+)$")
_EXPERT = re.compile(re.escape(EXPERTS) + r"(?:(?P<expert>\d+)\.)?(?P<rest>.+)$")


@attrs.frozen
class Rule:
    """One tensor of a layer, the tensors that it is made of, and the axis along which ranks share it."""

    names: tuple[str, ...]
    kind: str = PLAIN
    axis: int | None = None

    def of_expert(self, number: int) -> tuple[str, ...]:
        """The names of one expert's tensors."""
        return tuple(name.replace("{e}", str(number)) for name in self.names)


Rules = Mapping[str, Rule]


def _projections(kind: str, *letters: str, inside: str) -> tuple[str, ...]:
    return tuple(f"{inside}.{letter}_proj.{kind}" for letter in letters)


_ATTENTION = {
    "self_attention.linear_qkv.layer_norm_weight": Rule(("input_layernorm.weight",)),
    "self_attention.linear_qkv.weight": Rule(_projections("weight", *"qkv", inside="self_attn"), QKV, 0),
    "self_attention.linear_qkv.bias": Rule(_projections("bias", *"qkv", inside="self_attn"), QKV, 0),
    "self_attention.q_layernorm.weight": Rule(("self_attn.q_norm.weight",)),
    "self_attention.k_layernorm.weight": Rule(("self_attn.k_norm.weight",)),
    "self_attention.linear_proj.weight": Rule(("self_attn.o_proj.weight",), axis=1),
    "self_attention.linear_proj.bias": Rule(("self_attn.o_proj.bias",)),
}
_DENSE = {
    "mlp.linear_fc1.layer_norm_weight": Rule(("post_attention_layernorm.weight",)),
    "mlp.linear_fc1.weight": Rule(_projections("weight", "gate", "up", inside="mlp"), GATED, 0),
    "mlp.linear_fc1.bias": Rule(_projections("bias", "gate", "up", inside="mlp"), GATED, 0),
    "mlp.linear_fc2.weight": Rule(("mlp.down_proj.weight",), axis=1),
    "mlp.linear_fc2.bias": Rule(("mlp.down_proj.bias",)),
}

_UNGATED = {
    **_DENSE,
    "mlp.linear_fc1.weight": Rule(("mlp.up_proj.weight",), axis=0),
    "mlp.linear_fc1.bias": Rule(("mlp.up_proj.bias",), axis=0),
}


def _experts(router: str, gate: str, up: str, down: str) -> Rules:
    return {
        EXPERTS_NORM: Rule(("post_attention_layernorm.weight",)),
        "mlp.router.weight": Rule((router,)),
        EXPERTS + "linear_fc1.weight": Rule((gate, up), GATED, 0),
        EXPERTS + "linear_fc2.weight": Rule((down,), axis=1),
    }


_DENSE_LAYER: Rules = {**_ATTENTION, **_DENSE}
_MIXTRAL = "block_sparse_moe.experts.{e}"
_QWEN = "mlp.experts.{e}"

LAYERS: Mapping[str, Rules] = {
    "llama": _DENSE_LAYER,
    "mistral": _DENSE_LAYER,
    "qwen2": _DENSE_LAYER,
    "qwen3": _DENSE_LAYER,
    "smollm3": _DENSE_LAYER,
    "arcee": {**_ATTENTION, **_UNGATED},
    "mixtral": {
        **_ATTENTION,
        **_experts(
            "block_sparse_moe.gate.weight",
            *(f"{_MIXTRAL}.w1.weight", f"{_MIXTRAL}.w3.weight", f"{_MIXTRAL}.w2.weight"),
        ),
    },
    "qwen3_moe": {
        **_ATTENTION,
        **_experts("mlp.gate.weight", *(f"{_QWEN}.{n}_proj.weight" for n in ("gate", "up", "down"))),
    },
}
"""The tensors of a layer by the family of Hugging Face; biases and head norms where the model has them."""

_OBJECTS = (
    *("self_attention.linear_qkv", "self_attention.linear_proj", "self_attention.core_attention"),
    *("self_attention.q_layernorm", "self_attention.k_layernorm"),
)
DENSE_OBJECTS = (*_OBJECTS, "mlp.linear_fc1", "mlp.linear_fc2")
SPARSE_OBJECTS = (*_OBJECTS, "pre_mlp_layernorm")
EXPERT_OBJECTS = (EXPERTS + "linear_fc1", EXPERTS + "linear_fc2")
OUTER_OBJECTS = ("decoder.final_layernorm", "output_layer")
"""Modules whose `_extra_state` a trainer asks for: of its own layers, or of those of TransformerEngine."""


@attrs.frozen
class Place:
    """Where a key puts its tensor: a layer and an expert, or None where an axis of the tensor counts them."""

    suffix: str
    layer: int | None = None
    expert: int | None = None
    of_expert: bool = False
    in_layer: bool = True


def place_of(key: str) -> Place:
    """What a key of a model says."""
    match = _LAYER.match(key)
    if match is None:
        return Place(key, in_layer=False)
    layer = int(match["layer"]) if match["layer"] else None
    inner = _EXPERT.match(match["rest"])
    if inner is None:
        return Place(match["rest"], layer)
    expert = int(inner["expert"]) if inner["expert"] else None
    return Place(EXPERTS + inner["rest"], layer, expert, of_expert=True)
