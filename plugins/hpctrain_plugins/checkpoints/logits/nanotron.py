"""The flow of nanotron: fused projections, and rotary pairs in the order it trains with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.formats.nanotron.names import EMBEDDING, HEAD, NORM
from hpctrain_plugins.checkpoints.logits import maths
from hpctrain_plugins.checkpoints.logits.weights import Weights
from hpctrain_plugins.checkpoints.tensors import Tensor


def flow(
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    pairs: bool,
    tokens: Sequence[int],
    weights: Weights,
) -> Array:
    """The logits after each token; `tensors` are its tensors, put together by their slices."""
    count, size, kv = _heads(config)
    act, theta = maths.activation(config.get("hidden_act", "silu")), float(config.get("rope_theta", 10000.0))

    def norm(x: Array, name: str) -> Array:
        return maths.rms_norm(x, weights.vector(tensors[f"{name}.weight"]), config.get("rms_norm_eps", 1e-6))

    def linear(x: Array, name: str) -> Array:
        return weights.linear(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))

    x = weights.rows(tensors[EMBEDDING], tokens)
    for index in range(int(config["num_hidden_layers"])):
        at = f"model.decoder.{index}.pp_block"
        fused = linear(norm(x, f"{at}.input_layernorm"), f"{at}.attn.qkv_proj")
        parts = np.split(fused, [count * size, (count + kv) * size], axis=1)
        q, k, v = (maths.heads(part, size) for part in parts)
        q, k = (maths.turned(t, theta, size, pairs=pairs) for t in (q, k))
        x = x + linear(maths.attention(q, k, v), f"{at}.attn.o_proj")
        hidden = linear(norm(x, f"{at}.post_attention_layernorm"), f"{at}.mlp.gate_up_proj")
        gate, up = np.split(hidden, 2, axis=1)
        x = x + linear(act(gate) * up, f"{at}.mlp.down_proj")
    x = norm(x, NORM.removesuffix(".weight"))
    return weights.linear(x, tensors[EMBEDDING if config.get("tie_word_embeddings") else HEAD])


def _heads(config: Mapping[str, Any]) -> tuple[int, int, int]:
    count = int(config["num_attention_heads"])
    return count, int(config["hidden_size"]) // count, int(config.get("num_key_value_heads") or count)
