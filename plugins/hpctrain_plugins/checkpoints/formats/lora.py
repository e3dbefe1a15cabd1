"""LoRA adapters merged into their base: one product in float32, one rounding."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import attrs

from hpctrain.errors import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.tensors import LowRank, Model, Tensor

ADAPTER_CONFIG = "adapter_config.json"

_PREFIX = "base_model.model."
_FACTOR = re.compile(r"(.+)\.lora_(embedding_)?([AB])(?:\.default)?(?:\.weight)?$")
_OTHERS = (".lora_magnitude_vector", ".lora_B.bias", ".lora_B.default.bias")

_REFUSED = (
    "use_dora",
    "lora_bias",
    "target_parameters",
    "layer_replication",
    "trainable_token_indices",
    "megatron_config",
    "use_qalora",
    "use_bdlora",
)
"""Settings that change what an adapter means."""

_REFUSED_INITS = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""Ways to start an adapter that also change the base, which no file records."""


def is_adapter(name: str) -> bool:
    """Whether a tensor belongs to an adapter."""
    return ".lora_" in name


def merge(model: Model, config: dict[str, Any], base: Callable[[], Model]) -> Model:
    """The base with the adapter added; `base` is asked only when `model` holds no base itself."""
    check(config)
    factors, plain = _sorted(model.tensors)
    own = {n: t for n, t in plain.items() if ".original_module." not in n}
    bare = {n.replace(".modules_to_save.default", ""): t for n, t in own.items()}
    saved = {n: t.named(n) for n, t in bare.items()}
    targets = {_FACTOR.match(n)[1] for n in factors}  # type: ignore[index]
    whole = all(f"{m}.weight" in saved for m in targets)
    found = Model(saved, model.config, model.files) if whole else _over(base(), saved)
    if found.config.get("quantization_config"):
        raise ConfigError.of(
            "checkpoint-unsupported",
            "the base is quantised; merge into the full-precision model",
            where="base",
        )
    for module in sorted(targets):
        _add(found, module, factors, config)
    found.crcs |= model.crcs
    found.decisions |= {**model.decisions, "merged_adapters": len(targets)}
    found.decisions.setdefault("base", "in the checkpoint")
    found.ignored |= {n: "the weight before it was trained in full" for n in plain if n not in own}
    found.ignored |= model.ignored
    found.step = model.step
    return found


def check(config: dict[str, Any]) -> None:
    """Refuse by name what this merge would get wrong."""
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise ConfigError.of(
            "checkpoint-unsupported", f"adapters of type {kind} cannot be merged", where="peft_type"
        )
    for key in _REFUSED:
        if config.get(key):
            raise ConfigError.of(
                "checkpoint-unsupported", f"{key} is set, which this merge does not support", where=key
            )
    start = str(config.get("init_lora_weights", True)).lower()
    if start.startswith(_REFUSED_INITS):
        said = f"init_lora_weights {start} changed the base too; save the adapter with its conversion"
        raise ConfigError.of("checkpoint-unsupported", said, where="init_lora_weights")


def _sorted(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Factors and whole weights, under the names of the model without the adapter's wrappers."""
    factors: dict[str, Tensor] = {}
    plain: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        bare = name.removeprefix(_PREFIX).replace(".base_layer.", ".")
        if name.endswith(_OTHERS):
            raise ConfigError.of("checkpoint-unsupported", f"{name} cannot be merged", where=name)
        (factors if _FACTOR.match(bare) else plain)[bare] = tensor.named(bare)
    return factors, plain


def _over(base: Model, saved: dict[str, Tensor]) -> Model:
    """Modules that were trained whole take the place of the base's."""
    for name, tensor in saved.items():
        if name not in base.tensors:
            if name == "lm_head.weight" and base.config.get("tie_word_embeddings"):
                base.config = {**base.config, "tie_word_embeddings": False}
                base.decisions["untied"] = name
            else:
                raise IntegrityError.of("checkpoint-base", f"the base has no {name}", where=name)
        base.tensors[name] = tensor.named(name)
    return base


def _add(model: Model, module: str, factors: dict[str, Tensor], config: dict[str, Any]) -> None:
    name = f"{module}.weight"
    base = model.tensors.get(name)
    if base is None:
        said = f"the adapter changes {module}, which the base does not have"
        raise IntegrityError.of("checkpoint-base", said, where=module)
    pair = {}
    for key, tensor in factors.items():
        found = _FACTOR.match(key)
        if found and found[1] == module:
            pair[found[3]], embedding = tensor, bool(found[2])
    if set(pair) != {"A", "B"}:
        raise IntegrityError.of(
            "checkpoint-incomplete", f"{module} has only one of its two factors", where=module
        )
    rank = int(_pattern(config, "rank_pattern", module, config["r"]))
    alpha = float(_pattern(config, "alpha_pattern", module, config["lora_alpha"]))
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    turned = embedding or bool(config.get("fan_in_fan_out"))
    want = ((rank, base.shape[-1]), (base.shape[0], rank))
    want = ((rank, base.shape[0]), (base.shape[-1], rank)) if turned else want
    if len(base.shape) != 2 or (pair["A"].shape, pair["B"].shape) != want:
        shapes = f"{list(pair['A'].shape)} and {list(pair['B'].shape)}"
        said = f"{module} has factors {shapes} for a weight {list(base.shape)} at rank {rank}"
        raise IntegrityError.of("checkpoint-shape", said, where=module)
    added = LowRank(pair["B"], pair["A"], scale, turned)
    model.tensors[name] = attrs.evolve(base, name=name, add=added)


def _pattern(config: dict[str, Any], key: str, module: str, default: Any) -> Any:
    for pattern, value in (config.get(key) or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return default
