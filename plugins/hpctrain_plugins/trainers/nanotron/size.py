"""Size and effort of a nanotron run, from its configuration."""

from __future__ import annotations

from hpctrain.plugin import Numbers
from hpctrain_job.arithmetic.model_shape import Shape
from hpctrain_plugins.trainers.external.config import Config
from hpctrain_plugins.trainers.nanotron.checks import padded_vocabulary

_GB = 1e9
_WRITTEN = 14
"""Bytes that a checkpoint has of one weight: itself in bfloat16, its fp32 copy and the two moments."""


def numbers(config: Config) -> Numbers:
    """What is known before the job; what is not stays None and is named."""
    length = config.number("tokens", "sequence_length")
    rows = config.number("tokens", "micro_batch_size")
    rows *= config.number("tokens", "batch_accumulation_per_replica", default=1)
    rows *= config.number("parallelism", "dp", default=1)
    steps = config.number("tokens", "train_steps")
    vocabulary, padded = padded_vocabulary(config)
    left_out = []
    shape = _shape(config, padded)
    if shape is None:
        left_out.append("size: only the Llama family is counted here")
    return Numbers(
        parameters=shape.parameters if shape else None,
        trained=shape.parameters if shape else None,
        rows_per_step=rows or None,
        tokens_per_step=rows * length or None,
        steps=steps or None,
        flops_per_token=shape.flops_per_token(length) if shape else None,
        flops_causal=shape.flops_per_token(length, causal=True) if shape else None,
        vocabulary=vocabulary or None,
        vocabulary_padded=padded or None,
        memory_gb=_memory(config, shape.parameters) if shape else None,
        checkpoint_gb=round(shape.parameters * _WRITTEN / _GB, 3) if shape else None,
        leaves_out=(
            *left_out,
            "memory: activations and what the runtime itself takes",
            "memory of the host: tensors are written one by one",
        ),
    )


def _shape(config: Config, vocabulary: int) -> Shape | None:
    model = config.table("model", "model_config")
    kind = "qwen2" if model.get("is_qwen2_config") else "llama" if model.get("is_llama_config") else ""
    return Shape.of({**model, "model_type": kind, "vocab_size": vocabulary})


def _memory(config: Config, parameters: int) -> float:
    """Weights, gradients and AdamW's moments on one GPU; ZeRO-1 shares what only the step needs."""
    tp, pp = config.number("parallelism", "tp", default=1), config.number("parallelism", "pp", default=1)
    dp = config.number("parallelism", "dp", default=1) if config.number("optimizer", "zero_stage") else 1
    local_parameters = parameters / max(1, tp * pp)
    gradient = 4 if config.get("optimizer", "accumulate_grad_in_fp32") else 2
    master_and_moments = 12
    return round(local_parameters * (2 + gradient + master_and_moments / max(1, dp)) / _GB, 3)
