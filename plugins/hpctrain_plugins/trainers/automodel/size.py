"""Size and effort of an Automodel run: from its configuration, and from the model's own `config.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpctrain.plugin import Numbers
from hpctrain_job.arithmetic.model_shape import Shape, hardware
from hpctrain_plugins.trainers.automodel import adapters
from hpctrain_plugins.trainers.automodel.checks import data_parallel
from hpctrain_plugins.trainers.external.config import Config, Machine

_GB = 1e9
_LENGTHS = ("seq_length", "seq_len", "max_length", "max_seq_length")
_NOT_RECOMPUTED = ("", "false", "off", "none", "disabled", "no")


def numbers(config: Config, machine: Machine, model: Mapping[str, Any] | None = None) -> Numbers:
    """What is known before the job; `model` is its `config.json`, where the run names one."""
    packed = config.number("packed_sequence", "packed_sequence_size")
    length = packed or next(filter(None, (config.number("dataset", key) for key in _LENGTHS)), 0)
    rows = config.number("step_scheduler", "global_batch_size")
    shape, lora = shape_of(config, model), bool(config.table("peft"))
    trained = (adapters.count(config, shape) if lora else shape.parameters) if shape else None
    sized_shape = shape if length else None
    return Numbers(
        parameters=shape.parameters if shape else None,
        trained=trained,
        active=shape.of_experts if shape else None,
        rows_per_step=rows or None,
        tokens_per_step=rows * length or None,
        steps=config.number("step_scheduler", "max_steps") or None,
        flops_per_token=sized_shape.flops_per_token(length, frozen=lora) if sized_shape else None,
        flops_causal=sized_shape.flops_per_token(length, causal=True, frozen=lora) if sized_shape else None,
        hardware=hardware(frozen=lora) if _recomputes(config) else 1.0,
        memory_gb=_memory(config, machine, shape.parameters, trained) if shape and trained else None,
        saving_gb=_written(config, shape.parameters, trained, machine) if shape and trained else None,
        checkpoint_gb=_written(config, shape.parameters, trained) if shape and trained else None,
        leaves_out=tuple(_left_out(packed, length, shape)),
    )


def shape_of(config: Config, model: Mapping[str, Any] | None) -> Shape | None:
    """The model's shape: its `config.json`, else what the YAML makes it from; None where neither says."""
    model_config = config.table("model", "config")
    match = re.search(r"(\w+)Config$", str(model_config.get("_target_", "")))
    kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", match[1]).lower() if match else ""
    return Shape.of(model if model is not None else {**model_config, "model_type": kind})


def _left_out(packed: int, length: int, shape: Shape | None) -> list[str]:
    notes = []
    if not shape:
        notes.append("size: no config.json of a family that is counted (hpctrain lock reads that of the hub)")
    if not length:
        notes.append("tokens: rows are as long as they are, without packed_sequence_size or seq_length")
    elif not packed:
        notes.append("padding: rows shorter than seq_length count as full")
    return [*notes, *(["memory: activations and what the runtime itself takes"] if shape else [])]


def _recomputes(config: Config) -> bool:
    value = config.get("distributed", "activation_checkpointing", default="")
    return str(value).lower() not in _NOT_RECOMPUTED


def _memory(config: Config, machine: Machine, parameters: int, trained: int) -> float | None:
    """Weights, gradients and Adam's moments on one GPU, all of the weights' own type; DDP shares nothing."""
    copies = data_parallel(config, machine)
    if not copies or not re.search(r"\.Adam\w*$", config.text("optimizer", "_target_")):
        return None
    width = _width(config)
    parts = config.number("distributed", "tp_size", default=1) * config.number(
        "distributed", "pp_size", default=1
    )
    if config.text("distributed", "strategy").lower() != "ddp":
        parts *= copies * config.number("distributed", "cp_size", default=1)
    return round(width * (parameters + 3 * trained) / max(1, parts) / _GB, 3)


def _written(config: Config, parameters: int, trained: int, machine: Machine | None = None) -> float:
    """A checkpoint: what is trained, with its moments; of it each node of `machine` copies its part first."""
    whole = _width(config) * (min(parameters, trained) + 2 * trained)
    return round(whole / max(1, machine.nodes if machine else 1) / _GB, 3)


def _width(config: Config) -> int:
    """Bytes of a weight."""
    dtype = config.text("model", "torch_dtype") or config.text("model", "dtype")
    return 4 if dtype.endswith(("32", "float")) else 2
