"""The configuration of GPT-NeoX and of Hugging Face, each from the other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.formats.fused import Heads

_PLAIN = {"gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu", "mish": "mish"}
_GATED = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "silu": "silu"}
_TANH_GELU = ("gelu_fast", "gelu_new", "gelu_pytorch_tanh")

_WITHOUT_EQUAL = ("gpt_j_tied", "use_mup", "apply_residual_connection_post_layernorm")
"""Switches of what is computed between the layers' weights; muP scales attention and logits."""

_FULL_ATTENTION = ("global", "flash")

_HUGGING_FACE = ("model_type", "architectures", "num_hidden_layers", "transformers_version")
_LARGEST_FILE = 1 << 20
"""Bytes; what a YAML file holds costs a hundred times as much memory."""
_LARGEST = 1 << 31
_SIZES = ("num_layers", "hidden_size", "num_attention_heads")
"""Settings that every run of the trainer has."""


def load(sources: list[Path]) -> dict[str, Any]:
    """The settings of all files together, with underscores in every key."""
    import yaml  # here, because every conversion asks each format whether a folder is in it

    settings: dict[str, Any] = {}
    for path in sources:
        try:
            document = yaml.safe_load(documents.text(path, _LARGEST_FILE))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            raise IntegrityError.of(
                "checkpoint-damaged", f"{path} cannot be read ({error})", where=str(path)
            ) from error
        if isinstance(document, dict):
            settings.update({str(k).replace("-", "_"): _number(v) for k, v in document.items()})
    return settings


def _number(value: Any) -> Any:
    """YAML takes `1e-5` for text, trainers do not."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
        return float(value)
    return value


def check_settings(settings: dict[str, Any], args: dict[str, Any], files: list[Path], step: Path) -> None:
    """Refuse to guess: the files must be the trainer's and of this very run.

    What a rank file notes of the run (`args`) is a few sizes; the share of rotated dimensions, the
    residual and the activation are in the run's settings alone, and a default would be another model.
    """
    where = str(files[0] if len(files) == 1 else step / "configs")
    hint = "--config FILE      (the run's YAML; or a folder with all of them)"
    foreign = next((key for key in _HUGGING_FACE if key in settings), None)
    if foreign:
        message = f"{where} is a configuration of Hugging Face ({foreign}), not GPT-NeoX settings"
        raise ConfigError.of("checkpoint-config", message, where=where, hint=hint)
    lacking = next((key for key in _SIZES if settings.get(key) is None), None)
    if lacking:
        message = f"{where} does not set {lacking}" if files else f"{step} holds no settings of its run"
        notes = ("rotary_pct, gpt_j_residual, activation and others cannot be seen in the tensors",)
        raise ConfigError.of("checkpoint-config", message, where=where, hint=hint, notes=notes)
    for key in (*_SIZES, "max_position_embeddings"):
        if None not in (settings.get(key), args.get(key)) and settings[key] != args[key]:
            message = f"{where} sets {key} {settings[key]}, and the checkpoint was saved with {args[key]}"
            raise IntegrityError.of("checkpoint-stale", message, where=where, hint=hint)


def need(config: Mapping[str, Any], key: str) -> Any:
    """A setting without which nothing can be said."""
    if config.get(key) is None:
        raise ConfigError.of(
            "checkpoint-config",
            f"the configuration has no {key}" if config else "the checkpoint holds no configuration",
            where=key,
            hint="--config FILE",
        )
    return config[key]


def count_of(config: Mapping[str, Any], key: str) -> int:
    """A size without which nothing can be said: a checkpoint may have anything in its place."""
    value = need(config, key)
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        count = 0
    if not 1 <= count <= _LARGEST:
        message = f"{key} is {json.dumps(value, default=str)[:60]}, not a whole number from 1 to {_LARGEST}"
        raise ConfigError.of("checkpoint-config", message, where=key, hint="--config FILE")
    return count


def heads_of(config: dict[str, Any]) -> Heads:
    """From the words of GPT-NeoX."""
    query = count_of(config, "num_attention_heads")
    return Heads(query, int(config.get("num_kv_heads") or query), count_of(config, "hidden_size") // query)


def check_supported(config: dict[str, Any]) -> None:
    """Refuse what Hugging Face has no model for: most of it leaves the names and shapes of tensors alone."""
    for key in _WITHOUT_EQUAL:
        if config.get(key):
            raise ConfigError.of("checkpoint-unsupported", f"{key} has no equal in Hugging Face", where=key)
    position = config.get("pos_emb", "rotary")
    if position != "rotary":
        raise ConfigError.of(
            "checkpoint-unsupported", f"pos_emb {position} has no equal in Hugging Face", where="pos_emb"
        )
    for kind in _attention_kinds(config.get("attention_config")):
        if kind not in _FULL_ATTENTION:
            message = f"attention_config {kind} has no equal in Hugging Face"
            raise ConfigError.of("checkpoint-unsupported", message, where="attention_config")


def _attention_kinds(value: Any) -> list[str]:
    """The kinds in `[[["global", "local"], 6]]`, or in the list of all layers that it stands for."""
    if isinstance(value, list):
        return [kind for item in value for kind in _attention_kinds(item)]
    return [value] if isinstance(value, str) else []


def check_heads(config: dict[str, Any]) -> None:
    """Refuse heads of a size of their own."""
    heads, hidden = count_of(config, "num_attention_heads"), count_of(config, "hidden_size")
    size = config.get("head_dim") or hidden // heads
    if size * heads != hidden:
        message = f"GPT-NeoX has no head_dim: {heads} heads of {size} are not hidden_size {hidden}"
        raise ConfigError.of("checkpoint-unsupported", message, where="head_dim")


def to_hf(config: dict[str, Any], sizes: dict[str, int], biases: bool, llama: bool) -> dict[str, Any]:
    """`config.json` from the settings and from the sizes that the tensors themselves have."""
    hidden, heads = count_of(config, "hidden_size"), heads_of(config)
    common = {
        "vocab_size": sizes["vocab"],
        "hidden_size": hidden,
        "num_hidden_layers": count_of(config, "num_layers"),
        "num_attention_heads": heads.query,
        "intermediate_size": sizes["intermediate"],
        "max_position_embeddings": count_of(config, "max_position_embeddings"),
        "initializer_range": config.get("init_method_std", 0.02),
        "tie_word_embeddings": not config.get("no_weight_tying", False),
        "attention_bias": biases,
    }
    return {**common, **(_llama(config, heads) if llama else _gpt_neox(config))}


def _llama(config: dict[str, Any], heads: Heads) -> dict[str, Any]:
    if config.get("gpt_j_residual") or config.get("rotary_pct", 1.0) != 1.0:
        raise ConfigError.of(
            "checkpoint-unsupported", "a Llama has no parallel residual and rotates whole heads"
        )
    act = str(config.get("activation", "gelu"))
    if act not in _GATED:
        raise ConfigError.of(
            "checkpoint-unsupported", f"activation {act} with RMSNorm has no equal", where="activation"
        )
    sliding = config.get("sliding_window_width")
    return {
        "architectures": ["MistralForCausalLM" if sliding else "LlamaForCausalLM"],
        "model_type": "mistral" if sliding else "llama",
        "num_key_value_heads": heads.key_value,
        "hidden_act": _GATED[act],
        "rms_norm_eps": config.get("rms_norm_epsilon", 1e-8),
        "rope_theta": config.get("rotary_emb_base", 10000),
        **({"sliding_window": sliding} if sliding else {}),
    }


def _gpt_neox(config: dict[str, Any]) -> dict[str, Any]:
    if config.get("sliding_window_width"):
        message = "sliding_window_width has no equal in Hugging Face's GPT-NeoX"
        raise ConfigError.of("checkpoint-unsupported", message, where="sliding_window_width")
    act = str(config.get("activation", "gelu"))
    if act not in _PLAIN:
        raise ConfigError.of(
            "checkpoint-unsupported", f"activation {act} has no equal in Hugging Face", where="activation"
        )
    fused = act == "gelu" and config.get("bias_gelu_fusion", False)
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "model_type": "gpt_neox",
        "hidden_act": "gelu_fast" if fused else _PLAIN[act],
        "rotary_pct": config.get("rotary_pct", 1.0),
        "rotary_emb_base": config.get("rotary_emb_base", 10000),
        "use_parallel_residual": bool(config.get("gpt_j_residual", False)),
        "layer_norm_eps": config.get("layernorm_epsilon", 1e-5),
    }


def rope(config: dict[str, Any], key: str, old: str, default: Any) -> Any:
    """A rotary setting of Hugging Face under its new place or its old name."""
    nested = config.get("rope_parameters") or {}
    return nested.get(key, config.get(old, default))


def from_hf(config: dict[str, Any], vocab: int, tp: int, naming: str) -> dict[str, Any]:
    """The settings that a GPT-NeoX run file needs to load the weights."""
    kind = config.get("model_type")
    family = _from_gpt_neox if kind == "gpt_neox" else _from_llama
    scaling = rope(config, "rope_type", "rope_type", "default")
    if scaling != "default" or config.get("rope_scaling"):
        raise ConfigError.of(
            "checkpoint-unsupported", "GPT-NeoX cannot scale rotary embeddings", where="rope_scaling"
        )
    return {
        "num_layers": need(config, "num_hidden_layers"),
        "hidden_size": need(config, "hidden_size"),
        "num_attention_heads": need(config, "num_attention_heads"),
        "seq_length": need(config, "max_position_embeddings"),
        "max_position_embeddings": need(config, "max_position_embeddings"),
        "pos_emb": "rotary",
        "no_weight_tying": not config.get("tie_word_embeddings", False),
        "make_vocab_size_divisible_by": vocab // tp,
        "model_parallel_size": tp,
        **family(config, naming),
    }


def _from_gpt_neox(config: dict[str, Any], _naming: str) -> dict[str, Any]:
    act = str(config.get("hidden_act", "gelu"))
    plain = "gelu" if act in _TANH_GELU else act
    if plain not in _PLAIN:
        raise ConfigError.of(
            "checkpoint-unsupported", f"hidden_act {act} has no equal in GPT-NeoX", where="hidden_act"
        )
    return {
        "norm": "layernorm",
        "layernorm_epsilon": config.get("layer_norm_eps", 1e-5),
        "rotary_pct": rope(config, "partial_rotary_factor", "rotary_pct", 0.25),
        "rotary_emb_base": rope(config, "rope_theta", "rotary_emb_base", 10000),
        "gpt_j_residual": bool(config.get("use_parallel_residual", True)),
        "activation": plain,
        "bias_gelu_fusion": act in _TANH_GELU,
        "intermediate_size": need(config, "intermediate_size"),
        "mlp_multiple_of": _multiple(int(config["intermediate_size"]) // 2),
        "use_bias_in_attn_linear": config.get("attention_bias", True),
    }


def _from_llama(config: dict[str, Any], naming: str) -> dict[str, Any]:
    act, size = str(config.get("hidden_act", "silu")), count_of(config, "intermediate_size")
    gated = {v: k for k, v in reversed(_GATED.items())}
    if act not in gated:
        raise ConfigError.of(
            "checkpoint-unsupported", f"hidden_act {act} has no equal in GPT-NeoX", where="hidden_act"
        )
    heads = int(config["num_attention_heads"])
    sliding = config.get("sliding_window") if config.get("model_type") == "mistral" else None
    return {
        "norm": "rmsnorm",
        "rms_norm_epsilon": config.get("rms_norm_eps", 1e-6),
        "num_kv_heads": config.get("num_key_value_heads", heads),
        "rotary_pct": 1.0,
        "rotary_emb_base": rope(config, "rope_theta", "rope_theta", 10000),
        "gpt_j_residual": False,
        "activation": gated[act] if naming == "new" else act,
        "intermediate_size": 3 * size if naming == "new" else size,
        "mlp_multiple_of": _multiple(size),
        "use_bias_in_attn_linear": bool(config.get("attention_bias", False)),
        "use_bias_in_mlp": bool(config.get("mlp_bias", False)),
        **({"sliding_window_width": sliding} if sliding else {}),
    }


def _multiple(size: int) -> int:
    """The largest power of two up to 256 that divides `size`: the trainer rounds up to it."""
    return min(256, size & -size) if size else 1
