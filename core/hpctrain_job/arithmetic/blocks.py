"""The parts of which layers are made, each with its weights and its work on one token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """Attention, an MLP, experts or a state-space mixer; blocks and their numbers add up."""

    linear: tuple[tuple[str, int, int], ...] = ()
    """Linear layers that every token passes, as (name, in, out)."""
    chosen: int = 0
    """Weights that a token passes in the experts chosen for it, and in the router."""
    stored: int = 0
    """Weights beside `linear`: norms, biases, every expert."""
    scores: int = 0
    """Width of the attention scores: heads x head."""
    scan: int = 0
    """FLOPs of a training step's state-space scan, for one token."""
    backward_bytes: int | None = 0
    """Bytes of one token that stay for the backward pass in bfloat16, scores recomputed (SDPA, flash-attn);
    None: not counted here."""
    widened: int = 0
    """More of them where the weights are float32 under autocast."""

    @property
    def weights(self) -> int:
        return sum(a * b for _, a, b in self.linear) + self.stored

    @property
    def passed(self) -> int:
        return sum(a * b for _, a, b in self.linear) + self.chosen


def attention(config: Config, *, bias: bool = False, head_norms: bool = False) -> Block:
    """Queries, keys, values and output, with grouped keys and values."""
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    kv_heads = int(config.get("num_key_value_heads") or heads)
    head = int(config.get("head_dim") or hidden // heads)
    q, kv = heads * head, kv_heads * head
    return Block(
        linear=(("q_proj", hidden, q), ("k_proj", hidden, kv), ("v_proj", hidden, kv), ("o_proj", q, hidden)),
        stored=(q + 2 * kv if bias else 0) + (2 * head if head_norms else 0),
        scores=q,
        backward_bytes=(10 if head_norms else 4)
        * (q + kv),  # turned q and k, v, the output; with norms their inputs
    )


def mlp(hidden: int, ffn: int, *, gated: bool = True) -> Block:
    """Up and down, with a gate beside up where there is one."""
    up = [(name, hidden, ffn) for name in (("gate_proj", "up_proj") if gated else ("up_proj",))]
    bytes_of_token = 8 * ffn if gated else None  # gate, its activation, up, their product
    return Block(linear=(*up, ("down_proj", ffn, hidden)), backward_bytes=bytes_of_token)


def experts(hidden: int, ffn: int, count: int, top: int, *, gated: bool = True) -> Block:
    """Many small MLPs and the router that chooses among them."""
    expert_weights, router = mlp(hidden, ffn, gated=gated).weights, hidden * count
    return Block(
        chosen=top * expert_weights + router, stored=count * expert_weights + router, backward_bytes=None
    )


def mamba2(config: Config) -> Block:
    """A Mamba-2 mixer: projections in and out, a short convolution, a scan."""
    hidden, heads = int(config["hidden_size"]), int(config["mamba_num_heads"])
    inner = heads * int(config["mamba_head_dim"])
    state, groups = int(config["ssm_state_size"]), int(config["n_groups"])
    mixed = inner + 2 * groups * state
    kernel = int(config.get("conv_kernel", 4))
    return Block(
        linear=(("in_proj", hidden, inner + mixed + heads), ("out_proj", inner, hidden)),
        stored=mixed * kernel + (mixed if config.get("use_conv_bias", True) else 0) + 3 * heads + inner,
        scan=21 * inner * state,
        backward_bytes=None,
    )


def norm(hidden: int, count: int = 1) -> Block:
    """Norms in front of other blocks."""
    # its input in float32, its output, and the sum with what went around the block
    return Block(stored=count * hidden, backward_bytes=8 * hidden * count, widened=5 * hidden * count)
