"""Quantised weights: numbers that mean something only with their scales, so no type but their own fits."""

from __future__ import annotations

from itertools import chain

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import FLOATS, Model

_SETTINGS = ("quantization_config", "compression_config", "quantization")
_SCALES = (
    *("weight_scale", "weight_scale_inv", "input_scale", "weight_scale_2", "scales", "qzeros", "qweight"),
    *("absmax", "quant_map", "SCB", "weight_packed", "_scales", "_blocks"),
)


def evidence(model: Model) -> str:
    """What shows that the weights are quantised: a setting or a tensor; empty when they are not."""
    settings = [key for key in _SETTINGS if model.config.get(key)]
    narrow = (n for n, t in model.tensors.items() if t.packed or t.dtype.startswith("F8"))
    scales = (n for n in model.tensors if n.endswith(_SCALES) and _is_scale(n, model))
    return next(chain(settings, narrow, scales), "")


def _is_scale(name: str, model: Model) -> bool:
    """A module beside whose scale lies a weight of integers."""
    module = name.rpartition(".")[0]
    return any(
        tensor.dtype not in FLOATS
        for suffix in ("", ".weight", ".qweight", ".weight_packed")
        if (tensor := model.tensors.get(module + suffix)) is not None
    )


def check(model: Model, options: ConvertOptions) -> None:
    """Refuse to round the scales and to leave the weights as they are: half a conversion."""
    shown_by = evidence(model) if options.dtype != "keep" else ""
    if shown_by:
        message = f"the weights are quantised ({shown_by}), so --dtype would round their scales alone"
        hint = "leave --dtype out; for another type convert the full-precision model"
        raise ConfigError.of("checkpoint-unsupported", message, where="dtype", hint=hint)


def refuse(model: Model, trainer: str) -> None:
    """Refuse quantised weights for a trainer, whose files have no place for their scales."""
    shown_by = evidence(model)
    if shown_by:
        message = f"the weights are quantised ({shown_by}), and {trainer} trains plain ones"
        hint = "convert the full-precision model"
        raise ConfigError.of("checkpoint-unsupported", message, where=shown_by, hint=hint)
