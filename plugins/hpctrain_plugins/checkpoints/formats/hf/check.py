"""Whether `config.json` belongs to the tensors beside it, for families whose layers are all alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints import quantised
from hpctrain_plugins.checkpoints.tensors import Model

_EMBEDDINGS = {
    "gpt_neox": "gpt_neox.embed_in.weight",
    "llama": "model.embed_tokens.weight",
    "mistral": "model.embed_tokens.weight",
    "qwen2": "model.embed_tokens.weight",
}
_COUNTS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "intermediate_size", "head_dim"),
)
_LARGEST = 1 << 31
_LAYER = re.compile(r"(?:model\.|gpt_neox\.)?layers\.(\d+)\.(.+)$")
_COMPUTED = "rotary_emb.inv_freq"
_BUFFERS = ("attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq")
_Shapes: TypeAlias = "dict[str, tuple[int, ...]]"


def check(model: Model, path: Path) -> bool:
    """Whether the configuration says every tensor's shape; IntegrityError where one is lost or another.

    Families whose layers are not known here, and quantised weights, are not proven.
    """
    embedding = _EMBEDDINGS.get(str(model.config.get("model_type")))
    if embedding is None:
        return False
    _counts(model, path)
    embedding = _without_head(model, embedding)
    _size(model, embedding, ("vocab_size", "hidden_size"), path)
    _outer(model, embedding, path)
    layers = _layers(model)
    count = model.config.get("num_hidden_layers")
    for index in sorted(set(range(count)) ^ set(layers)) if isinstance(count, int) else ():
        message = f"layer {index} is missing from {path}, whose configuration says {count} layers"
        if index in layers:
            message = f"{path} has a layer {index} where its configuration says {count} layers"
        raise IntegrityError.of("checkpoint-incomplete", message, where=str(path))
    if layers and not quantised.evidence(model):  # some layers may be left as they were
        _check_alike(layers, path)
        return _sizes(model, min(layers), layers[min(layers)], path)
    return False


def _counts(model: Model, path: Path) -> None:
    """Numbers that sizes are computed from are whole and no larger than their model can have."""
    for name in _COUNTS:
        value = model.config.get(name)
        most = len(model.tensors) if name == "num_hidden_layers" else _LARGEST
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            message = f"{name} of {path} is {json.dumps(value)[:60]}, not a whole number from 1 to {most}"
            raise IntegrityError.of("checkpoint-config", message, where=name)


def _without_head(model: Model, embedding: str) -> str:
    """The embedding's name; a model that was saved without a head has no family's name in front."""
    short = embedding.partition(".")[2]
    return short if embedding not in model.tensors and short in model.tensors else embedding


def _outer(model: Model, embedding: str, path: Path) -> None:
    """The head, where it is not the embedding, and the last norm are there and in their sizes."""
    front = embedding.rpartition("embed_")[0]
    neox = model.config["model_type"] == "gpt_neox"
    norm = f"{front}{'final_layer_norm' if neox else 'norm'}"
    for name in (f"{norm}.weight", *([f"{norm}.bias"] if neox else [])):
        _size(model, name, ("hidden_size",), path)
    head = "embed_out.weight" if neox else "lm_head.weight"
    tied = model.config.get("tie_word_embeddings", False)
    if head in model.tensors or (front and not tied and _has_head(model)):
        _size(model, head, ("vocab_size", "hidden_size"), path)


def _has_head(model: Model) -> bool:
    """Whether the configuration is a language model's: others have no head, or one of another size."""
    return str((model.config.get("architectures") or [""])[0]).endswith("ForCausalLM")


def _check_alike(layers: Mapping[int, _Shapes], path: Path) -> None:
    """Every layer holds the same tensors in the same shapes."""
    first = layers[min(layers)]
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


def _lacking(layers: Mapping[int, _Shapes], suffix: str, path: Path) -> str:
    """Few layers with a tensor have one too many, many have lost one."""
    having = sorted(index for index, shapes in layers.items() if suffix in shapes)
    without = sorted(set(layers) - set(having))
    if len(having) > len(without):
        return f"{suffix} of layer {without[0]} is missing from {path}"
    where = ", ".join(map(str, having[:3])) + (f" and {len(having) - 3} more" if len(having) > 3 else "")
    return f"{suffix} stands in layer {where} of {path} and not in layer {without[0]}"


def _sizes(model: Model, layer: int, shapes: _Shapes, path: Path) -> bool:
    """Whether all tensors of the layer are expected; those that are have their shapes, and none is lost."""
    expected = _expected_shapes(model)
    for suffix, shape in expected.items():
        if suffix not in shapes:
            message = f"{suffix} of layer {layer} is missing from {path}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=suffix)
        if shapes[suffix] != shape:
            message = f"{suffix} of layer {layer} has shape {list(shapes[suffix])}"
            raise IntegrityError.of(
                "checkpoint-shape", f"{message} where config.json says {list(shape)}", where=suffix
            )
    return bool(expected) and set(shapes) <= {*expected, *_BUFFERS}


def _expected_shapes(model: Model) -> _Shapes:
    """Every tensor of a layer, by the configuration; empty where it does not say all sizes."""
    config = model.config
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    inner = config.get("intermediate_size")
    if not (isinstance(hidden, int) and isinstance(inner, int) and isinstance(heads, int) and heads):
        return {}
    if quantised.evidence(model):
        return {}
    if config["model_type"] == "gpt_neox":
        return _gpt_neox(hidden, inner, bool(config.get("attention_bias", True)))
    size = int(config.get("head_dim") or hidden // heads)
    groups = config.get("num_key_value_heads") or (heads if config["model_type"] == "llama" else 0)
    return _llama(config, hidden, inner, {"q": heads * size, "k": int(groups) * size}) if groups else {}


def _gpt_neox(hidden: int, inner: int, attention_bias: bool) -> _Shapes:
    norms = ("input_layernorm", "post_attention_layernorm")
    out: _Shapes = {f"{norm}.{part}": (hidden,) for norm in norms for part in ("weight", "bias")}
    out |= {"attention.query_key_value.weight": (3 * hidden, hidden)}
    out |= {"attention.dense.weight": (hidden, hidden)}
    if attention_bias:
        out |= {"attention.query_key_value.bias": (3 * hidden,), "attention.dense.bias": (hidden,)}
    out |= {"mlp.dense_h_to_4h.weight": (inner, hidden), "mlp.dense_h_to_4h.bias": (inner,)}
    return out | {"mlp.dense_4h_to_h.weight": (hidden, inner), "mlp.dense_4h_to_h.bias": (hidden,)}


def _llama(config: Mapping[str, Any], hidden: int, inner: int, rows: Mapping[str, int]) -> _Shapes:
    """Of Llama, Mistral and Qwen 2, which differ in their biases."""
    norms = ("input_layernorm", "post_attention_layernorm")
    out: _Shapes = {f"{norm}.weight": (hidden,) for norm in norms}
    sizes = {**rows, "v": rows["k"]}
    out |= {f"self_attn.{letter}_proj.weight": (n, hidden) for letter, n in sizes.items()}
    out["self_attn.o_proj.weight"] = (hidden, rows["q"])
    out |= {f"mlp.{name}.weight": (inner, hidden) for name in ("gate_proj", "up_proj")}
    out["mlp.down_proj.weight"] = (hidden, inner)
    llama = config["model_type"] == "llama"
    if config["model_type"] == "qwen2" or (llama and config.get("attention_bias")):
        out |= {f"self_attn.{letter}_proj.bias": (n,) for letter, n in sizes.items()}
    if llama and config.get("attention_bias"):
        out["self_attn.o_proj.bias"] = (hidden,)
    if llama and config.get("mlp_bias"):
        out |= {f"mlp.{name}.bias": (inner,) for name in ("gate_proj", "up_proj")}
        out["mlp.down_proj.bias"] = (hidden,)
    return out


def _layers(model: Model) -> dict[int, _Shapes]:
    layers: dict[int, _Shapes] = {}
    for name, tensor in model.tensors.items():
        match = _LAYER.match(name)
        if match and not name.endswith(_COMPUTED):
            layers.setdefault(int(match[1]), {})[match[2]] = tensor.shape
    return layers


def _size(model: Model, name: str, keys: tuple[str, ...], path: Path) -> None:
    tensor = model.tensors.get(name)
    if tensor is None:
        kind = model.config["model_type"]
        message = f"{name} is missing from {path}, whose configuration says model_type {kind}"
        raise IntegrityError.of("checkpoint-incomplete", message, where=name)
    sizes: list[Any] = [model.config.get(key) for key in keys]
    if None not in sizes and tensor.shape != tuple(sizes):
        raise IntegrityError.of(
            "checkpoint-shape",
            f"{name} has shape {list(tensor.shape)} where config.json says {sizes}",
            where=name,
        )
