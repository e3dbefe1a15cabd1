"""The flow of GPT-NeoX through its own shards: every rank for itself, then the reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.formats.neox.config import heads_of, to_hf
from hpctrain_plugins.checkpoints.formats.neox.names import GPT_NEOX, LLAMA_LIKE, canonical
from hpctrain_plugins.checkpoints.formats.neox.shards import Shards
from hpctrain_plugins.checkpoints.logits import maths
from hpctrain_plugins.checkpoints.logits.weights import Weights
from hpctrain_plugins.checkpoints.tensors import Tensor

_QKV, _DENSE, _UP, _DOWN = (
    "attention.query_key_value",
    "attention.dense",
    "mlp.dense_h_to_4h",
    "mlp.dense_4h_to_h",
)


def flow(
    shards: Shards, config: dict[str, Any], order: str, tokens: Sequence[int], weights: Weights
) -> Array:
    """The logits after each token; `order` is that of grouped query, key and value rows."""
    return _Flow(shards, config, order, weights).logits(tokens)


class _Flow:
    def __init__(self, shards: Shards, config: dict[str, Any], order: str, weights: Weights) -> None:
        self.gated = (2, "input_layernorm.scale") in shards.tensors
        arch = LLAMA_LIKE if self.gated else GPT_NEOX
        self.tensors = {(layer, canonical(n, arch)): ranks for (layer, n), ranks in shards.tensors.items()}
        self.config, self.order, self.w, self.tp = config, order, weights, shards.tp
        self.heads = heads_of(config).over(shards.tp)
        self.layers = int(config["num_layers"])
        sizes = {"vocab": 0, "intermediate": 0}
        self.act = maths.activation(to_hf(config, sizes, False, self.gated)["hidden_act"])

    def logits(self, tokens: Sequence[int]) -> Array:
        x = self.embedded(tokens)
        for layer in range(2, self.layers + 2):
            x = self.block(layer, x)
        x = self.norm(self.layers + 3, "norm", x)
        untied = self.config.get("no_weight_tying", False)
        head = (self.layers + 4, "final_linear.weight") if untied else (0, "word_embeddings.weight")
        return np.concatenate([self.w.linear(x, rank) for rank in self.tensors[head]], axis=1)

    def embedded(self, tokens: Sequence[int]) -> Array:
        """Every rank looks up the rows of its own range and gives zeros for others."""
        ranks = self.tensors[0, "word_embeddings.weight"]
        rows = ranks[0].shape[0]
        return np.concatenate([self.w.rows(ranks[t // rows], [t % rows]) for t in tokens])

    def block(self, layer: int, x: Array) -> Array:
        ranks = range(self.tp)
        a = self.norm(layer, "input_layernorm", x)
        if self.config.get("gpt_j_residual"):  # one reduction: each rank adds its own biases before it
            b = self.norm(layer, "post_attention_layernorm", x)
            parts = [
                self.attention(layer, r, a, self.get(layer, f"{_DENSE}.bias", r))
                + self.mlp(layer, r, b, self.get(layer, f"{_DOWN}.bias", r))
                for r in ranks
            ]
            return np.asarray(x + sum(parts))
        x = x + sum(self.attention(layer, r, a, None) for r in ranks) + self.bias(layer, f"{_DENSE}.bias")
        b = self.norm(layer, "post_attention_layernorm", x)
        after = "mlp.linear2.bias" if self.gated else f"{_DOWN}.bias"
        return np.asarray(x + sum(self.mlp(layer, r, b, None) for r in ranks) + self.bias(layer, after))

    def bias(self, layer: int, name: str) -> Any:
        """What is added once, after the reduction."""
        bias = self.get(layer, name, 0)
        return 0.0 if bias is None else self.w.vector(bias)

    def get(self, layer: int, name: str, rank: int) -> Tensor | None:
        ranks = self.tensors.get((layer, name))
        return ranks[rank] if ranks else None

    def linear(self, layer: int, name: str, rank: int, x: Array) -> Array:
        """A column-parallel layer: bias and weight of this rank."""
        weight = self.tensors[layer, f"{name}.weight"][rank]
        return self.w.linear(x, weight, self.get(layer, f"{name}.bias", rank))

    def norm(self, layer: int, name: str, x: Array) -> Array:
        scale = self.get(layer, f"{name}.scale", 0)
        if scale is not None:
            return maths.rms_norm(x, self.w.vector(scale), self.config.get("rms_norm_epsilon", 1e-8))
        weight, bias = (self.w.vector(self.tensors[layer, f"{name}.{p}"][0]) for p in ("weight", "bias"))
        return maths.layer_norm(x, weight, bias, self.config.get("layernorm_epsilon", 1e-5))

    def attention(self, layer: int, rank: int, x: Array, bias: Tensor | None) -> Array:
        size, query, key = self.heads.size, self.heads.query, self.heads.key_value
        fused = self.linear(layer, _QKV, rank, x)
        if self.order == "concat":
            parts = np.split(fused, [query * size, (query + key) * size], axis=1)
        else:
            share = size * key // query
            parts = np.split(fused.reshape(len(x), query, -1), [size, size + share], axis=2)
        q, k, v = (maths.heads(part.reshape(len(x), -1), size) for part in parts)
        rotary = int(size * self.config.get("rotary_pct", 1.0))
        base = float(self.config.get("rotary_emb_base", 10000))
        q, k = (maths.turned(t, base, rotary) for t in (q, k))
        return self.w.linear(maths.attention(q, k, v), self.tensors[layer, f"{_DENSE}.weight"][rank], bias)

    def mlp(self, layer: int, rank: int, x: Array, bias: Tensor | None) -> Array:
        if not self.gated:
            inner = self.act(self.linear(layer, _UP, rank, x))
            return self.w.linear(inner, self.tensors[layer, f"{_DOWN}.weight"][rank], bias)
        if (layer, "mlp.w1.weight") in self.tensors:
            gate, up = (self.linear(layer, f"mlp.{n}", rank, x) for n in ("w1", "w3"))
            last = "mlp.w2.weight"
        else:
            up, gate = np.split(self.linear(layer, "mlp.linear1", rank, x), 2, axis=1)
            last = "mlp.linear2.weight"
        return self.w.linear(self.act(gate) * up, self.tensors[layer, last][rank], bias)
