"""Size and effort of a NeoX run, and what NeoX's own FLOPs count."""

from __future__ import annotations

from typing import Any

from hpctrain.plugin import Numbers
from hpctrain_plugins.trainers.external.config import Config, Machine
from hpctrain_plugins.trainers.neox.batch import batch, data_parallel
from hpctrain_plugins.trainers.neox.checks import attention

_GATED = ("geglu", "reglu", "swiglu", "bilinear", "glu")
_GPT2 = 50257
_GB = 1e9
_WRITTEN = 14
"""Bytes that a checkpoint has of one weight: itself in 16 bits, its fp32 copy and the two moments."""
HFU_TO_MFU = 3 / 4
"""NeoX prints four passes a token with checkpointed activations, where the model itself needs three."""


def numbers(config: Config, machine: Machine) -> Numbers:
    """What is known before the job; what is not stays None and is named."""
    dp = data_parallel(config, machine)
    sizes = batch(config, dp) if dp else None
    length = config.number("seq_length")
    vocabulary = padded_vocabulary(config)
    left_out = ["biases and norms", "memory: activations and what the runtime itself takes"]
    left_out.append("memory of the host: tensors are written one by one")
    if not vocabulary:
        left_out.insert(0, "vocabulary: its size is in the tokenizer's file")
    if config.get("checkpoint_activations"):
        left_out.append("recomputed activations: NeoX prints HFU, which is 4/3 of MFU")
    common: dict[str, Any] = {
        "rows_per_step": sizes.train if sizes else None,
        "tokens_per_step": sizes.train * length if sizes and length else None,
        "hardware": 1 / HFU_TO_MFU if config.get("checkpoint_activations") else 1.0,
        "vocabulary": _GPT2 if _is_gpt2(config) else None,
        "vocabulary_padded": vocabulary or None,
    }
    matrices = _matrices(config)
    if not matrices:
        return Numbers(steps=config.number("train_iters") or None, leaves_out=tuple(left_out), **common)
    hidden = config.number("hidden_size")
    parameters = matrices + hidden * vocabulary * (2 if config.get("no_weight_tying") else 1)
    scores = 12 * config.number("num_layers") * length * hidden
    flops = 6.0 * (matrices + hidden * vocabulary) + scores
    return Numbers(
        parameters=parameters,
        trained=parameters,
        steps=config.number("train_iters") or None,
        flops_per_token=flops,
        flops_causal=flops - scores / 2,
        memory_gb=_memory(config, parameters, dp) if dp else None,
        checkpoint_gb=round(parameters * _WRITTEN / _GB, 3),
        leaves_out=tuple(left_out),
        **common,
    )


def padded_vocabulary(config: Config) -> int:
    """The vocabulary as it is trained; 0 where only the tokenizer knows it."""
    padded = config.number("padded_vocab_size")
    if padded or not _is_gpt2(config):
        return padded
    multiple = config.number("make_vocab_size_divisible_by", default=128)
    multiple *= max(1, config.number("model_parallel_size", default=1))
    return -(-_GPT2 // multiple) * multiple if multiple > 0 else 0


def _is_gpt2(config: Config) -> bool:
    return config.text("tokenizer_type").lower() in ("", "gpt2bpetokenizer")


def _matrices(config: Config) -> int:
    """Weights of all layers; 0 where one is of another kind than attention."""
    hidden, heads = config.number("hidden_size"), config.number("num_attention_heads")
    kinds = attention(config)
    if not (hidden and heads and kinds) or set(kinds) - {"global", "flash"}:
        return 0
    kv = (config.number("num_kv_heads") or heads) * (hidden // heads)
    ffn = config.number("intermediate_size") or 4 * hidden
    gates = 3 if config.text("activation").lower() in _GATED else 2
    return len(kinds) * (2 * hidden * hidden + 2 * hidden * kv + gates * hidden * ffn)


def _memory(config: Config, parameters: int, dp: int) -> float:
    """Weights, gradients and Adam's moments on one GPU; ZeRO divides them by stage."""
    parts = max(1, config.number("pipe_parallel_size")) * max(
        1, config.number("model_parallel_size", default=1)
    )
    local_parameters, stage = parameters / parts, config.number("zero_optimization", "stage")
    weights = 2 / dp if stage == 3 else 2
    gradients = 4 / dp if stage >= 2 else 4
    moments = 12 / dp if stage >= 1 else 12
    return round(local_parameters * (weights + gradients + moments) / _GB, 3)
