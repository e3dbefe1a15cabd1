"""The flow of Hugging Face's models: whole tensors, no ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.formats.neox.config import count_of, need, rope
from hpctrain_plugins.checkpoints.logits import maths
from hpctrain_plugins.checkpoints.logits.weights import Weights
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_LLAMAS = ("llama", "mistral", "qwen2")


def check(config: dict[str, Any]) -> None:
    """Refuse what the flow below does not compute."""
    kind = need(config, "model_type")
    if kind != "gpt_neox" and kind not in _LLAMAS:
        raise ConfigError.of(
            "checkpoint-unsupported",
            f"--verify logits computes gpt_neox, {', '.join(_LLAMAS)}, not {kind}",
            where="model_type",
            hint="--verify roundtrip",
        )
    scaled = config.get("rope_scaling") or rope(config, "rope_type", "rope_type", "default") != "default"
    if scaled:
        raise ConfigError.of(
            "checkpoint-unsupported",
            "--verify logits does not compute scaled rotary embeddings",
            where="rope_scaling",
            hint="--verify roundtrip",
        )


def flow(model: Model, tokens: Sequence[int], weights: Weights) -> Array:
    """The logits after each token, as Hugging Face's model computes them."""
    kind = _GptNeox if model.config["model_type"] == "gpt_neox" else _Llama
    return kind(model, weights).logits(tokens)


class _Family:
    prefix: str
    embedding: str
    head: str

    def __init__(self, model: Model, weights: Weights) -> None:
        self.model, self.config, self.w = model, model.config, weights
        self.count = count_of(model.config, "num_attention_heads")
        self.size = int(self.config.get("head_dim") or need(self.config, "hidden_size") // self.count)
        self.act = maths.activation(str(need(self.config, "hidden_act")))

    def logits(self, tokens: Sequence[int]) -> Array:
        x = self.w.rows(self.model.tensors[self.embedding], tokens)
        for index in range(int(self.config["num_hidden_layers"])):
            x = self.block(f"{self.prefix}.{index}", x)
        tied = self.config.get("tie_word_embeddings", False)
        return self.w.linear(self.last(x), self.model.tensors[self.embedding if tied else self.head])

    def block(self, at: str, x: Array) -> Array:
        raise AssertionError(at)

    def last(self, x: Array) -> Array:
        raise AssertionError(x)

    def get(self, name: str) -> Tensor | None:
        return self.model.tensors.get(name)

    def vector(self, name: str) -> Array:
        return self.w.vector(self.model.tensors[name])

    def linear(self, name: str, x: Array) -> Array:
        return self.w.linear(x, self.model.tensors[f"{name}.weight"], self.get(f"{name}.bias"))


class _Llama(_Family):
    prefix, embedding, head = "model.layers", "model.embed_tokens.weight", "lm_head.weight"

    def last(self, x: Array) -> Array:
        return self.norm("model.norm", x)

    def norm(self, name: str, x: Array) -> Array:
        epsilon = self.config.get("rms_norm_eps", 1e-6)
        return maths.rms_norm(x, self.vector(f"{name}.weight"), epsilon)

    def block(self, at: str, x: Array) -> Array:
        a = self.norm(f"{at}.input_layernorm", x)
        parts = (self.linear(f"{at}.self_attn.{n}_proj", a) for n in "qkv")
        query, key, value = (maths.heads(part, self.size) for part in parts)
        base = float(rope(self.config, "rope_theta", "rope_theta", 10000.0))
        query, key = (maths.turned(t, base, self.size) for t in (query, key))
        x = x + self.linear(f"{at}.self_attn.o_proj", maths.attention(query, key, value))
        b = self.norm(f"{at}.post_attention_layernorm", x)
        gate, up = (self.linear(f"{at}.mlp.{n}_proj", b) for n in ("gate", "up"))
        return x + self.linear(f"{at}.mlp.down_proj", self.act(gate) * up)


class _GptNeox(_Family):
    prefix, embedding, head = "gpt_neox.layers", "gpt_neox.embed_in.weight", "embed_out.weight"

    def last(self, x: Array) -> Array:
        return self.norm("gpt_neox.final_layer_norm", x)

    def norm(self, name: str, x: Array) -> Array:
        weight, bias = (self.vector(f"{name}.{part}") for part in ("weight", "bias"))
        return maths.layer_norm(x, weight, bias, self.config.get("layer_norm_eps", 1e-5))

    def block(self, at: str, x: Array) -> Array:
        attended = self.attention(at, self.norm(f"{at}.input_layernorm", x))
        if self.config.get("use_parallel_residual", True):
            return x + attended + self.mlp(at, self.norm(f"{at}.post_attention_layernorm", x))
        x = x + attended
        return x + self.mlp(at, self.norm(f"{at}.post_attention_layernorm", x))

    def attention(self, at: str, x: Array) -> Array:
        fused = self.linear(f"{at}.attention.query_key_value", x)
        query, key, value = (
            t.swapaxes(0, 1)
            for t in (fused.reshape(len(x), self.count, 3, self.size)[:, :, i] for i in range(3))
        )
        base = float(rope(self.config, "rope_theta", "rotary_emb_base", 10000))
        rotary = int(self.size * rope(self.config, "partial_rotary_factor", "rotary_pct", 0.25))
        query, key = (maths.turned(t, base, rotary) for t in (query, key))
        return self.linear(f"{at}.attention.dense", maths.attention(query, key, value))

    def mlp(self, at: str, x: Array) -> Array:
        return self.linear(f"{at}.mlp.dense_4h_to_h", self.act(self.linear(f"{at}.mlp.dense_h_to_4h", x)))
