"""Whether `config.json` belongs to the tensors beside it, for families whose layers are all alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
    for index, held in layers.items():
        first = layers[min(layers)]
        for suffix in sorted({*first, *held}):
            one, other = first.get(suffix), held.get(suffix)
            if one == other:
                continue
            name = f"{suffix} of layer {index}"
            if one is None or other is None:
                lacking = index if other is None else min(layers)
                said = f"{suffix} of layer {lacking} is missing from {path}"
                raise IntegrityError.of("checkpoint-incomplete", said, where=suffix)
            said = f"{name} has shape {list(other)}, in other layers {list(one)}"
            raise IntegrityError.of("checkpoint-shape", said, where=name)


def _layers(model: Model) -> dict[int, dict[str, tuple[int, ...]]]:
    found: dict[int, dict[str, tuple[int, ...]]] = {}
    for name, tensor in model.tensors.items():
        match = _LAYER.match(name)
        if match and not name.endswith(_COMPUTED):
            found.setdefault(int(match[1]), {})[match[2]] = tensor.shape
    return found


def _size(model: Model, name: str, keys: tuple[str, ...], path: Path) -> None:
    tensor = model.tensors.get(name)
    if tensor is None:
        raise IntegrityError.of("checkpoint-incomplete", f"{name} is missing from {path}", where=name)
    said: list[Any] = [model.config.get(key) for key in keys]
    if None not in said and tensor.shape != tuple(said):
        raise IntegrityError.of(
            "checkpoint-shape",
            f"{name} has shape {list(tensor.shape)} where config.json says {said}",
            where=name,
        )
