"""Arithmetic on a model's `config.json`: parameters and FLOPs, before any weight exists.

Known are decoders of the Llama family, mixtures of experts among them, and Nemotron-H's hybrids of Mamba-2,
attention and experts. Everything else has no numbers here: none is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hpctrain_job.arithmetic.blocks import Block, attention, experts, mamba2, mlp, norm

_NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_MOST_LAYERS = 10_000
"""A file that says more is no model's; it would only take long to count."""


@dataclass(frozen=True)
class Shape:
    """A decoder as the blocks of all its layers between the embeddings and the output head."""

    hidden: int
    vocab: int
    tied: bool
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape | None:
        """Read a `config.json`; None for an architecture that is not known here, not complete or no model."""
        kind = config.get("model_type", "")
        parts = _KINDS.get(kind) if isinstance(kind, str) else None
        try:
            if parts is None or not all(int(config[key]) > 0 for key in _NEEDED):
                return None
            if int(config["num_hidden_layers"]) > _MOST_LAYERS:
                return None
            blocks = parts(config)
            hidden, vocab = int(config["hidden_size"]), int(config["vocab_size"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
            return None
        return cls(hidden, vocab, bool(config.get("tie_word_embeddings", False)), tuple(blocks))

    @property
    def parameters(self) -> int:
        """All weights; tied embeddings count once."""
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2)
        return sum(block.weights for block in self.blocks) + embeddings + self.hidden

    @property
    def active(self) -> int:
        """Weights of the matrices that one token passes: fewer than are stored where experts are chosen."""
        return sum(block.passed for block in self.blocks) + self.hidden * self.vocab

    @property
    def of_experts(self) -> int | None:
        """The same where a token passes a part of the layers; None where it passes all of them."""
        return self.active if any(block.chosen for block in self.blocks) else None

    def adapters(self, rank: int, takes: Callable[[str], bool] = bool) -> int | None:
        """Weights of LoRA adapters of `rank` on the linear layers whose last name `takes` likes.

        The output head is not among them. None with experts: whether they are linear layers is the
        library's choice.
        """
        if any(block.chosen for block in self.blocks):
            return None
        return sum(rank * (a + b) for block in self.blocks for name, a, b in block.linear if takes(name))

    def backward_bytes(self, *, mixed: bool, recomputed: bool = False) -> int | None:
        """Bytes of one token on the GPU when its backward pass begins; None where a block is not counted.

        `mixed`: float32 weights under autocast to bfloat16. `recomputed`: each layer keeps its input, and one
        layer at a time the rest. What autograd saves was counted in torch; the loss holds the logits in
        bfloat16, and their softmax and its gradient in float32.
        """
        layers = sum(bool(block.scores) for block in self.blocks)
        counted = [block.backward_bytes for block in self.blocks if block.backward_bytes is not None]
        if len(counted) < len(self.blocks) or not layers:
            return None
        body = sum(counted) + (sum(block.widened for block in self.blocks) if mixed else 0)
        if recomputed:
            body = layers * self.hidden * (4 if mixed else 2) + body // layers
        return body + self.hidden * (11 if mixed else 8) + 10 * self.vocab

    def flops_per_token(self, length: int, *, causal: bool = False, frozen: bool = False) -> float:
        """FLOPs of one trained token in sequences of `length`: forward and backward.

        `causal` counts half of the attention scores. `frozen` (LoRA) leaves out the weight gradients,
        a third. Recomputed activations never count: this is the basis of MFU, not of HFU.
        """
        scores = (6 if causal else 12) * length * sum(block.scores for block in self.blocks)
        total = 6.0 * self.active + scores + sum(block.scan for block in self.blocks)
        return total * 2 / 3 if frozen else total


def hardware(*, frozen: bool = False) -> float:
    """FLOPs that the hardware does for each that counts, where activations are computed a second time."""
    return 3 / 2 if frozen else 4 / 3


def _llama(config: Mapping[str, Any]) -> list[Block]:
    kind, hidden = config["model_type"], int(config["hidden_size"])
    layer = (
        attention(config, bias=kind == "qwen2", head_norms=kind in ("qwen3", "qwen3_moe")),
        norm(hidden, 2),
    )
    feed = [_feed(config, number) for number in range(int(config["num_hidden_layers"]))]
    return [block for feed_blocks in feed for block in (*layer, *feed_blocks)]


def _feed(config: Mapping[str, Any], layer: int) -> tuple[Block, ...]:
    """What stands behind the attention of one layer."""
    hidden = int(config["hidden_size"])
    if config["model_type"] == "mixtral":
        return (_experts(config, "intermediate_size", "num_local_experts"),)
    if config["model_type"] == "qwen3_moe" and _has_experts(config, layer):
        return (_experts(config, "moe_intermediate_size", "num_experts"),)
    return (mlp(hidden, int(config["intermediate_size"])),)


def _has_experts(config: Mapping[str, Any], layer: int) -> bool:
    every = int(config.get("decoder_sparse_step", 1))
    return layer not in (config.get("mlp_only_layers") or ()) and (layer + 1) % every == 0


def _nemotron_h(config: Mapping[str, Any]) -> list[Block]:
    """One mixer a layer, as its pattern says: M Mamba, * attention, - MLP, E experts."""
    hidden = int(config["hidden_size"])
    mixers: dict[str, Callable[[], tuple[Block, ...]]] = {
        "M": lambda: (mamba2(config),),
        "*": lambda: (attention(config),),
        "-": lambda: (mlp(hidden, int(config["intermediate_size"]), gated=False),),
        "E": lambda: _nemotron_experts(config),
    }
    pattern = str(config["hybrid_override_pattern"])
    return [block for letter in pattern for block in (*mixers[letter](), norm(hidden))]


def _nemotron_experts(config: Mapping[str, Any]) -> tuple[Block, ...]:
    """Experts to choose among, beside those that every token passes."""
    routed = _experts(config, "moe_intermediate_size", "n_routed_experts", gated=False)
    shared = int(config.get("n_shared_experts", 1)) * int(config["moe_shared_expert_intermediate_size"])
    return routed, mlp(int(config["hidden_size"]), shared, gated=False)


def _experts(config: Mapping[str, Any], ffn: str, count: str, *, gated: bool = True) -> Block:
    """Experts, from the keys that name the width of one and how many there are."""
    hidden, top = int(config["hidden_size"]), int(config["num_experts_per_tok"])
    return experts(hidden, int(config[ffn]), int(config[count]), top, gated=gated)


_KINDS: dict[str, Callable[[Mapping[str, Any]], list[Block]]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"), _llama),
    "nemotron_h": _nemotron_h,
}
