"""Whether `config.json` belongs to the tensors beside it, for families whose layers are all alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints import quantised
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES, Family, Shapes
from hpctrain_plugins.checkpoints.tensors import Model

_COUNTS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "intermediate_size", "head_dim"),
    *("num_experts", "num_local_experts", "moe_intermediate_size", "max_position_embeddings"),
)
_LARGEST = 1 << 31
_LAYER = re.compile(r"(?:model\.|gpt_neox\.)?layers\.(\d+)\.(.+)$")
_BUFFERS = ("rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias")
"""Endings of what is computed anew, which older generations of transformers saved."""


def check(model: Model, path: Path) -> bool:
    """Whether the configuration says every tensor's shape; IntegrityError where one is lost or another.

    Families that have no table, tensors that no table has, and quantised weights are not proven.
    """
    family = FAMILIES.get(str(model.config.get("model_type")))
    if family is None:
        return False
    _counts(model, path)
    packed = bool(quantised.evidence(model))  # into other shapes, and some layers may be left as they were
    outer = set() if packed else _outer(model, family, path)
    layers = _layers(model)
    _numbered(model, layers, path)
    layer = {} if packed else family.of_layer(model.config)
    if layer:
        _check_alike(layers, path)
        _of_layer(layer, min(layers, default=0), layers, path)
    around = {name for name in _weights(model) if not _LAYER.match(name)}
    return bool(layer) and around <= outer and all(set(layer) >= set(shapes) for shapes in layers.values())


def _counts(model: Model, path: Path) -> None:
    """Numbers that sizes are computed from are whole and no larger than their model can have."""
    for name in _COUNTS:
        value = model.config.get(name)
        most = len(model.tensors) if name == "num_hidden_layers" else _LARGEST
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            message = f"{name} of {path} is {json.dumps(value)[:60]}, not a whole number from 1 to {most}"
            raise IntegrityError.of("checkpoint-config", message, where=name)


def _numbered(model: Model, layers: Mapping[int, Shapes], path: Path) -> None:
    """There are as many layers as the configuration says."""
    count = model.config.get("num_hidden_layers")
    for index in sorted(set(range(count)) ^ set(layers)) if isinstance(count, int) else ():
        message = f"layer {index} is missing from {path}, whose configuration says {count} layers"
        if index in layers:
            message = f"{path} has a layer {index} where its configuration says {count} layers"
        raise IntegrityError.of("checkpoint-incomplete", message, where=str(path))


def _outer(model: Model, family: Family, path: Path) -> set[str]:
    """The tensors around the layers that are there in their sizes; a tied head may be there or not.

    A model that was saved without its head has no family's name in front of the others.
    """
    headless = family.prefix + family.embedding not in model.tensors and family.embedding in model.tensors
    expected = family.outer(model.config, headless=headless)
    if family.head not in model.tensors and (family.is_tied(model.config) or not _has_head(model)):
        expected.pop(family.head, None)
    for name, shape in expected.items():
        tensor = model.tensors.get(name)
        if tensor is None:
            kind = model.config["model_type"]
            message = f"{name} is missing from {path}, whose configuration says model_type {kind}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=name)
        if shape and tensor.shape != shape:
            message = f"{name} has shape {list(tensor.shape)} where config.json says {list(shape)}"
            raise IntegrityError.of("checkpoint-shape", message, where=name)
    return {name for name, shape in expected.items() if shape}


def _has_head(model: Model) -> bool:
    """Whether the configuration is a language model's: others have no head, or one of another size."""
    return str((model.config.get("architectures") or [""])[0]).endswith("ForCausalLM")


def _check_alike(layers: Mapping[int, Shapes], path: Path) -> None:
    """Every layer holds the same tensors in the same shapes."""
    first = layers[min(layers)] if layers else {}
    for index, shapes in layers.items():
        for suffix in sorted({*first, *shapes}):
            expected, actual = first.get(suffix), shapes.get(suffix)
            if expected == actual:
                continue
            if expected is None or actual is None:
                raise IntegrityError.of("checkpoint-incomplete", _lacking(layers, suffix, path), where=suffix)
            name = f"{suffix} of layer {index}"
            message = f"{name} has shape {list(actual)}, in other layers {list(expected)}"
            raise IntegrityError.of("checkpoint-shape", message, where=name)


def _lacking(layers: Mapping[int, Shapes], suffix: str, path: Path) -> str:
    """Few layers with a tensor have one too many, many have lost one."""
    having = sorted(index for index, shapes in layers.items() if suffix in shapes)
    without = sorted(set(layers) - set(having))
    if len(having) > len(without):
        return f"{suffix} of layer {without[0]} is missing from {path}"
    where = ", ".join(map(str, having[:3])) + (f" and {len(having) - 3} more" if len(having) > 3 else "")
    return f"{suffix} stands in layer {where} of {path} and not in layer {without[0]}"


def _of_layer(expected: Shapes, layer: int, layers: Mapping[int, Shapes], path: Path) -> None:
    """No tensor of the layer is lost or has another shape than it should."""
    shapes = layers.get(layer, {})
    for suffix, shape in expected.items():
        if suffix not in shapes:
            message = f"{suffix} of layer {layer} is missing from {path}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=suffix)
        if shapes[suffix] != shape:
            message = f"{suffix} of layer {layer} has shape {list(shapes[suffix])}"
            raise IntegrityError.of(
                "checkpoint-shape", f"{message} where config.json says {list(shape)}", where=suffix
            )


def _weights(model: Model) -> list[str]:
    return [name for name in model.tensors if not name.endswith(_BUFFERS)]


def _layers(model: Model) -> dict[int, Shapes]:
    layers: dict[int, Shapes] = {}
    for name in _weights(model):
        match = _LAYER.match(name)
        if match:
            layers.setdefault(int(match[1]), {})[match[2]] = model.tensors[name].shape
    return layers
