"""Whether `config.json` belongs to the tensors beside it, for families whose layers are all alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.tensors import Model

_EMBEDDINGS = {
    "gpt_neox": "gpt_neox.embed_in.weight",
    "llama": "model.embed_tokens.weight",
    "mistral": "model.embed_tokens.weight",
    "qwen2": "model.embed_tokens.weight",
}
_LAYER = re.compile(r"(?:model|gpt_neox)\.layers\.(\d+)\.(.+)$")
_COMPUTED = "rotary_emb.inv_freq"
_Shapes: TypeAlias = "dict[str, tuple[int, ...]]"


def check(model: Model, path: Path) -> None:
    """IntegrityError where a layer is missing or too many, or a shape is another than its fellows'."""
    embedding = _EMBEDDINGS.get(str(model.config.get("model_type")))
    if embedding is None:
        return
    _size(model, embedding, ("vocab_size", "hidden_size"), path)
    layers = _layers(model)
    count = model.config.get("num_hidden_layers")
    for index in sorted(set(range(count)) ^ set(layers)) if isinstance(count, int) else ():
        said = f"layer {index} is missing from {path}, whose configuration says {count} layers"
        if index in layers:
            said = f"{path} has a layer {index} where its configuration says {count} layers"
        raise IntegrityError.of("checkpoint-incomplete", said, where=str(path))
    if layers:
        _alike(layers, path)
        _sizes(model, min(layers), layers[min(layers)])


def _alike(layers: Mapping[int, _Shapes], path: Path) -> None:
    """Every layer holds the same tensors in the same shapes."""
    first = layers[min(layers)]
    for index, held in layers.items():
        for suffix in sorted({*first, *held}):
            one, other = first.get(suffix), held.get(suffix)
            if one == other:
                continue
            if one is None or other is None:
                raise IntegrityError.of("checkpoint-incomplete", _lacking(layers, suffix, path), where=suffix)
            name = f"{suffix} of layer {index}"
            said = f"{name} has shape {list(other)}, in other layers {list(one)}"
            raise IntegrityError.of("checkpoint-shape", said, where=name)


def _lacking(layers: Mapping[int, _Shapes], suffix: str, path: Path) -> str:
    """Few layers with a tensor have one too many, many have lost one."""
    having = sorted(index for index, held in layers.items() if suffix in held)
    without = sorted(set(layers) - set(having))
    if len(having) > len(without):
        return f"{suffix} of layer {without[0]} is missing from {path}"
    where = ", ".join(map(str, having[:3])) + (f" and {len(having) - 3} more" if len(having) > 3 else "")
    return f"{suffix} stands in layer {where} of {path} and not in layer {without[0]}"


def _sizes(model: Model, layer: int, held: _Shapes) -> None:
    """The shapes of a layer, as the configuration counts heads and widths."""
    for suffix, shape in _wanted(model.config).items():
        if suffix in held and held[suffix] != shape:
            said = f"{suffix} of layer {layer} has shape {list(held[suffix])}"
            raise IntegrityError.of(
                "checkpoint-shape", f"{said} where config.json says {list(shape)}", where=suffix
            )


def _wanted(config: Mapping[str, Any]) -> _Shapes:
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads) or "quantization_config" in config:
        return {}
    out: _Shapes = {}
    if config["model_type"] == "gpt_neox":
        out["attention.query_key_value.weight"] = (3 * hidden, hidden)
    size = int(config.get("head_dim") or hidden // heads)
    groups = config.get("num_key_value_heads") or (heads if config["model_type"] == "llama" else 0)
    rows = {"q": heads, "k": int(groups), "v": int(groups)}
    out |= {f"self_attn.{letter}_proj.weight": (n * size, hidden) for letter, n in rows.items() if n}
    out["self_attn.o_proj.weight"] = (hidden, heads * size)
    inner = config.get("intermediate_size")
    if isinstance(inner, int):
        wide = ("gate_proj", "up_proj", "dense_h_to_4h")
        out |= {f"mlp.{name}.weight": (inner, hidden) for name in wide}
        out |= {f"mlp.{name}.weight": (hidden, inner) for name in ("down_proj", "dense_4h_to_h")}
    return out


def _layers(model: Model) -> dict[int, _Shapes]:
    found: dict[int, _Shapes] = {}
    for name, tensor in model.tensors.items():
        match = _LAYER.match(name)
        if match and not name.endswith(_COMPUTED):
            found.setdefault(int(match[1]), {})[match[2]] = tensor.shape
    return found


def _size(model: Model, name: str, keys: tuple[str, ...], path: Path) -> None:
    tensor = model.tensors.get(name)
    if tensor is None:
        kind = model.config["model_type"]
        said = f"{name} is missing from {path}, whose configuration says model_type {kind}"
        raise IntegrityError.of("checkpoint-incomplete", said, where=name)
    sizes: list[Any] = [model.config.get(key) for key in keys]
    if None not in sizes and tensor.shape != tuple(sizes):
        raise IntegrityError.of(
            "checkpoint-shape",
            f"{name} has shape {list(tensor.shape)} where config.json says {sizes}",
            where=name,
        )
