"""What an adapter's configuration may set for a plain merge; all else is refused by its name."""

from __future__ import annotations

from typing import Any

from hpctrain.plugin import ConfigError

_TAKEN = frozenset(
    {
        *("r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "fan_in_fan_out"),
        *("peft_type", "init_lora_weights", "base_model_name_or_path", "modules_to_save"),
    }
)
"""Settings that this merge follows."""

_WITHOUT_EFFECT = frozenset(
    {
        *("task_type", "auto_mapping", "peft_version", "revision", "inference_mode", "lora_dropout", "bias"),
        *(
            "target_modules",
            "exclude_modules",
            "layers_to_transform",
            "layers_pattern",
            "ensure_weight_tying",
        ),
        *("megatron_core", "loftq_config", "eva_config", "corda_config", "lora_ga_config"),
        *("qalora_group_size", "arrow_config", "runtime_config"),
    }
)
"""Settings of training, or for what another setting switches on; the tensors show the outcome."""

_INITS = ("true", "gaussian", "eva", "orthogonal", "false")
"""Ways to start an adapter that leave the base as it is; others change it, which no file records."""


def check(config: dict[str, Any]) -> None:
    """Refuse by name what this merge would get wrong, settings of a newer PEFT among it."""
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        _refuse(f"adapters of type {kind} cannot be merged", "peft_type")
    for key, value in config.items():
        if value and key not in _TAKEN and key not in _WITHOUT_EFFECT:
            _refuse(f"{key} is set, which this merge does not support", key)
    start = str(config.get("init_lora_weights", True)).lower()
    if start not in _INITS:
        message = f"init_lora_weights {start} changed the base too; save the adapter with its conversion"
        _refuse(message, "init_lora_weights")


def _refuse(message: str, key: str) -> None:
    raise ConfigError.of("checkpoint-unsupported", message, where=key)
