"""LoRA adapters merged into their base: one product in float32, one rounding."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import quantised
from hpctrain_plugins.checkpoints.formats.peft import settings, vocabulary
from hpctrain_plugins.checkpoints.tensors import LowRank, Model, Tensor

ADAPTER_CONFIG = "adapter_config.json"

_PREFIX = "base_model.model."
_FACTOR = re.compile(r"(.+)\.lora_(embedding_)?([AB])(?:\.default)?(?:\.weight)?$")
_SAVED = re.compile(r"\.modules_to_save(?:\.default)?(?=\.)")
_ORIGINAL = re.compile(r"\.original_module(?=\.)")


def is_adapter(name: str) -> bool:
    """Whether a tensor belongs to an adapter."""
    return ".lora_" in name


@attrs.define
class _Adapter:
    """The tensors of an adapter, under the names of the model without PEFT's wrappers."""

    factors: dict[str, dict[str, Tensor]] = attrs.field(factory=dict)
    """Module -> its factors `A` and `B`."""
    embeddings: set[str] = attrs.field(factory=set)
    """Modules whose factors are those of an embedding, which lie the other way round."""
    saved: dict[str, Tensor] = attrs.field(factory=dict)
    """Weights as a whole: trained ones, and those of the base that came along."""
    originals: dict[str, Tensor] = attrs.field(factory=dict)
    """What trained weights were before."""


def merge(
    model: Model, config: dict[str, Any], base: Callable[[], Model], *, may_hold_base: bool = False
) -> Model:
    """The base with the adapter added; `base` is not asked where `model` may hold it and does."""
    settings.check(config)
    adapter = _sorted(model.tensors)
    targets = sorted(adapter.factors)
    whole = may_hold_base and all(f"{module}.weight" in adapter.saved for module in targets)
    merged = Model(dict(adapter.saved), model.config, model.files) if whole else base()
    before = {**merged.tensors, **adapter.originals}
    grown: dict[str, int] = {}
    if not whole:
        grown = _grown(adapter.saved, merged.tensors)
        _over(merged, adapter.saved)
        before |= {n: t for n, t in adapter.saved.items() if n.removesuffix(".weight") in adapter.factors}
    if quantised.evidence(merged):
        raise ConfigError.of(
            "checkpoint-unsupported",
            "the base is quantised; merge into the full-precision model",
            where="base",
        )
    for module in targets:
        _add(merged, module, adapter, config)
    changed = {f"{module}.weight" for module in targets} | set(adapter.originals if whole else adapter.saved)
    vocabulary.untie(merged, before, changed)
    vocabulary.resize(merged, grown)
    merged.crcs |= model.crcs
    merged.decisions |= {**model.decisions, "merged_adapters": len(targets)}
    merged.decisions.setdefault("base", "in the checkpoint")
    merged.ignored |= dict.fromkeys(
        (f"{n} (original)" for n in adapter.originals), "the weight before it was trained in full"
    )
    merged.ignored |= model.ignored
    merged.step = model.step
    return merged


def _sorted(tensors: dict[str, Tensor]) -> _Adapter:
    """Factors, whole weights and what these replaced."""
    adapter = _Adapter()
    wrapped = {n for n in tensors if _SAVED.search(n)}
    for name in sorted(tensors, key=lambda n: n in wrapped):  # of two copies the trained one is last
        bare = name.removeprefix(_PREFIX).replace(".base_layer.", ".")
        match = _FACTOR.match(bare)
        if match:
            adapter.factors.setdefault(match[1], {})[match[3]] = tensors[name].named(bare)
            if match[2]:
                adapter.embeddings.add(match[1])
        elif is_adapter(bare):
            raise ConfigError.of("checkpoint-unsupported", f"{name} cannot be merged", where=name)
        elif _ORIGINAL.search(bare):
            original = _ORIGINAL.sub("", bare)
            adapter.originals[original] = tensors[name].named(original)
        else:
            trained = _SAVED.sub("", bare)
            adapter.saved[trained] = tensors[name].named(trained)
    return adapter


def _over(base: Model, saved: dict[str, Tensor]) -> None:
    """Modules that were trained whole take the place of the base's."""
    for name, tensor in saved.items():
        replaced = base.tensors.get(name)
        if replaced is None and not (name == "lm_head.weight" and vocabulary.is_tied(base)):
            raise IntegrityError.of("checkpoint-base", f"the base has no {name}", where=name)
        if replaced is None:
            base.config = {**base.config, "tie_word_embeddings": False}
            base.decisions["untied"] = name
        elif replaced.shape != tensor.shape and not _has_grown(name, replaced, tensor):
            message = f"{name} has shape {list(tensor.shape)}, in the base {list(replaced.shape)}"
            raise IntegrityError.of("checkpoint-shape", message, where=name)
        base.tensors[name] = tensor


def _has_grown(name: str, before: Tensor, after: Tensor) -> bool:
    """Only the number of tokens is another."""
    return vocabulary.is_vocabulary(name) and before.shape[1:] == after.shape[1:]


def _grown(saved: dict[str, Tensor], base: dict[str, Tensor]) -> dict[str, int]:
    """The rows of weights that have another number of tokens than the base's."""
    return {n: t.shape[0] for n, t in saved.items() if n in base and t.shape != base[n].shape}


def _add(model: Model, module: str, adapter: _Adapter, config: dict[str, Any]) -> None:
    name, pair = f"{module}.weight", adapter.factors[module]
    base = model.tensors.get(name)
    if base is None:
        message = f"the adapter changes {module}, which the base does not have"
        raise IntegrityError.of("checkpoint-base", message, where=module)
    if set(pair) != {"A", "B"}:
        raise IntegrityError.of(
            "checkpoint-incomplete", f"{module} has only one of its two factors", where=module
        )
    rank = int(_pattern(config, "rank_pattern", module, config["r"]))
    alpha = float(_pattern(config, "alpha_pattern", module, config["lora_alpha"]))
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    turned = module in adapter.embeddings or bool(config.get("fan_in_fan_out"))
    want = ((rank, base.shape[-1]), (base.shape[0], rank))
    want = ((rank, base.shape[0]), (base.shape[-1], rank)) if turned else want
    if len(base.shape) != 2 or (pair["A"].shape, pair["B"].shape) != want:
        shapes = f"{list(pair['A'].shape)} and {list(pair['B'].shape)}"
        message = f"{module} has factors {shapes} for a weight {list(base.shape)} at rank {rank}"
        raise IntegrityError.of("checkpoint-shape", message, where=module)
    added = LowRank(pair["B"], pair["A"], scale, turned)
    model.tensors[name] = attrs.evolve(base, name=name, add=added)


def _pattern(config: dict[str, Any], key: str, module: str, default: Any) -> Any:
    for pattern, value in (config.get(key) or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return default
