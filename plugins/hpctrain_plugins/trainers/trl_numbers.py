"""Size and effort of a run, from the shape that its run file states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpctrain.plugin import Numbers

if TYPE_CHECKING:
    from hpctrain_job.shape import Shape

_GB = 1e9
_ADAM = 8
"""Bytes of AdamW's two moments for one trained weight."""


def numbers(options: Any, world: int) -> Numbers:
    """What is known before the job; what is not stays None and is named."""
    rows = options.per_device_train_batch_size * options.gradient_accumulation_steps * world
    left_out = ["padding: rows shorter than max_length count as full"]
    if not options.max_steps:
        left_out.append("steps: they follow from the number of rows")
    shape = _shape(options)
    tokens = rows * options.max_length
    steps = options.max_steps or None
    if shape is None:
        left_out.append("size: the run file does not state the model's shape (train.trl.config)")
        return Numbers(tokens_per_step=tokens, steps=steps, leaves_out=tuple(left_out))
    from hpctrain_job.shape import hardware

    lora = options.method == "lora"
    trained = _adapters(options, shape) if lora else shape.parameters
    return Numbers(
        parameters=shape.parameters,
        trained=trained,
        active=shape.active if shape.active < shape.parameters else None,
        tokens_per_step=tokens,
        steps=steps,
        flops_per_token=shape.flops_per_token(options.max_length, frozen=lora),
        flops_causal=shape.flops_per_token(options.max_length, causal=True, frozen=lora),
        hardware=hardware(frozen=lora) if options.activation_checkpointing else 1.0,
        memory_gb=_memory(options, shape.parameters, trained, world) if trained else None,
        leaves_out=(*left_out, "memory: activations and what the runtime itself takes"),
    )


def _shape(options: Any) -> Shape | None:
    """The model's shape where the run file states it; only then its arithmetic is loaded."""
    if not options.config:
        return None
    from hpctrain_job.shape import Shape

    return Shape.of(options.config)


def _adapters(options: Any, shape: Shape) -> int | None:
    """Adapter weights on every linear layer, or on those named; None where a word is no layer's last name."""
    chosen = options.lora_target_modules
    if chosen == ("all-linear",):
        return shape.adapters(options.lora_r)
    if not all(shape.adapters(1, word.__eq__) for word in chosen):
        return None
    return shape.adapters(options.lora_r, chosen.__contains__)


def _memory(options: Any, parameters: int, trained: int, world: int) -> float:
    """Weights, gradients and AdamW's moments on one GPU; ZeRO divides them by stage, FSDP all."""
    half = options.dtype == "bfloat16" or (options.dtype == "auto" and options.method == "lora")
    weights = parameters * (2 if half else 4)
    moments = trained * _ADAM
    gradients = trained * 4
    if options.method == "lora":
        weights += trained * 4
    stage = 3 if options.fsdp else options.zero_stage
    if stage >= 1:
        moments //= world
    if stage >= 2:
        gradients //= world
    if stage == 3:
        weights //= world
    return round((weights + moments + gradients) / _GB, 3)
