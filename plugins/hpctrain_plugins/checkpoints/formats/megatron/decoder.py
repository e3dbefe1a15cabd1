"""Megatron's layers as Hugging Face's: query, key and value apart, gate and up, experts one by one."""

from __future__ import annotations

from typing import TypeAlias

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.formats.fused import Heads, split_qkv
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.formats.megatron.layers import Cell
from hpctrain_plugins.checkpoints.formats.megatron.names import (
    EMBEDDING,
    EXPERTS_NORM,
    GATED,
    HEAD,
    LAYERS,
    LOCAL_EXPERTS_NORM,
    NORM,
    OUTER,
    QKV,
    Rule,
    Rules,
)
from hpctrain_plugins.checkpoints.formats.megatron.settings import heads_of
from hpctrain_plugins.checkpoints.formats.neox.config import need
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

Layers: TypeAlias = "dict[str, dict[Cell, Tensor]]"


def decoder(model: Model, outer: dict[str, Tensor], layers: Layers, rows: int | None) -> None:
    """Give the model its tensors and a vocabulary of `rows`; what has no place in its family is refused."""
    kind = str(need(model.config, "model_type"))
    if kind not in LAYERS:
        message = f"there is no table of Megatron's names for {kind} models; there is for {', '.join(LAYERS)}"
        raise ConfigError.of("checkpoint-unsupported", message, where="model_type")
    rules = LAYERS[kind]
    _one_norm(model, layers, rules)
    for key in (*(set(outer) - set(OUTER)), *(set(layers) - set(rules))):
        raise ConfigError.of("checkpoint-unsupported", f"{key} has no place in a {kind} model", where=key)
    _around(model, outer, rows)
    heads = heads_of(model.config)
    for layer in sorted({layer for cells in layers.values() for layer, _ in cells}):
        for suffix, rule in rules.items():
            for expert in sorted(_experts(layers.get(suffix, {}), layer), key=lambda e: e or 0):
                names = rule.names if expert is None else rule.of_expert(expert)
                parts = _parts(layers[suffix][layer, expert], rule, heads)
                for name, part in zip(names, parts, strict=True):
                    full = f"model.layers.{layer}.{name}"
                    model.tensors[full] = part.named(full)


def _around(model: Model, outer: dict[str, Tensor], rows: int | None) -> None:
    """Embedding, last norm and head; the vocabulary without padding where its true size is known."""
    tied = FAMILIES[str(model.config["model_type"])].is_tied(model.config)
    true_size = rows or model.config.get("vocab_size")
    padded = outer[EMBEDDING].shape[0] if EMBEDDING in outer else 0
    size = true_size if isinstance(true_size, int) else padded
    for key, name in OUTER.items():
        tensor = outer.get(key)
        if tensor is None and not (key == HEAD and tied):
            raise IntegrityError.of("checkpoint-incomplete", f"{key} is missing", where=key)
        if tensor is not None:
            cut = key != NORM and size < tensor.shape[0]
            model.tensors[name] = (tensor.part(0, 0, size) if cut else tensor).named(name)
    if not isinstance(true_size, int):
        message = f"the vocabulary has {padded} rows, as Megatron padded it; --config FILE says its true size"
        model.warnings.append(message)
    elif size < padded:
        model.decisions["vocab_rows_dropped"] = padded - size
    model.config["vocab_size"] = size


def _experts(cells: dict[Cell, Tensor], layer: int) -> list[int | None]:
    return [expert for number, expert in cells if number == layer]


def _one_norm(model: Model, layers: Layers, rules: Rules) -> None:
    """The norm in front of experts under one name; where it is under both they must be equal."""
    local = layers.pop(LOCAL_EXPERTS_NORM, {}) if LOCAL_EXPERTS_NORM not in rules else {}
    for cell, tensor in local.items():
        norm = layers.setdefault(EXPERTS_NORM, {}).setdefault(cell, tensor)
        if norm is not tensor:
            model.replicas.append((norm, tensor))


def _parts(tensor: Tensor, rule: Rule, heads: Heads) -> list[Tensor]:
    if rule.kind == QKV:
        return split_qkv(tensor, heads, "grouped")
    return tensor.chunk(0, 2) if rule.kind == GATED else [tensor]
