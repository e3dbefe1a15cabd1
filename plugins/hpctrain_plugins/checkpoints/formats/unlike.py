"""What a family computes that the models of a training framework do not: the words of a refusal."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.plugin import ConfigError

_EXPERTS = "experts"
_HEAD_NORMS = "norms of each head's query and key"
_SCALED = "embeddings scaled by their width"
_LATE_NORMS = "norms behind attention and feed-forward"

FEATURES = {
    "qwen2": "biases of query, key and value alone",
    "qwen3": _HEAD_NORMS,
    "qwen3_moe": f"{_EXPERTS} and {_HEAD_NORMS}",
    "mixtral": _EXPERTS,
    "gemma": _SCALED,
    "gemma2": f"{_SCALED}, {_LATE_NORMS}, and soft caps",
    "gemma3_text": f"{_SCALED}, {_LATE_NORMS}, and two rotary bases",
    "granite": "multipliers of embedding, attention, residuals and logits",
    "arcee": "squared ReLUs without gates",
    "olmo": "norms without weights",
    "olmo2": _LATE_NORMS,
    "olmo3": _LATE_NORMS,
    "olmoe": f"{_EXPERTS}, and norms over all heads together",
    "phi3": "query, key and value in one tensor, gate and up in another",
    "smollm3": "layers without rotary embeddings",
    "gpt_neox": "norms with biases, and a feed-forward beside attention",
}
"""Beside Llama's. A framework that has one of these has a table of names for that family."""


def refusal(framework: str, kind: str, names: Iterable[str]) -> ConfigError:
    """The error for a model of a family that is not written for a framework."""
    what = f"{kind} models ({FEATURES[kind]})" if kind in FEATURES else f"{kind} models"
    message = f"{what} are not written for {framework}; {', '.join(names)} are"
    return ConfigError.of("checkpoint-unsupported", message, where="model_type")
