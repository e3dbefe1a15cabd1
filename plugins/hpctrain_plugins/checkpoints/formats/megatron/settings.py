"""What a model is in the words of Megatron-LM and in those of Hugging Face, each from the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.formats.fused import Heads
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.formats.neox.config import count_of, need, rope

_CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "arcee": "ArceeForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("apply_layernorm_1p", "multi_latent_attention", "rotary_interleaved"), ()),
    **dict.fromkeys(("window_size", "mtp_num_layers"), ()),
    **dict.fromkeys(("heterogeneous_layers_config_path", "heterogeneous_layers_config_encoded_json"), ()),
    **dict.fromkeys(("hybrid_layer_pattern", "hybrid_override_pattern", "is_hybrid_model"), ()),
    **dict.fromkeys(("linear_attention_freq", "experimental_attention_variant", "attention_output_gate"), ()),
    **dict.fromkeys(("moe_shared_expert_intermediate_size", "moe_router_enable_expert_bias"), ()),
    **dict.fromkeys(("moe_router_num_groups", "moe_latent_size", "use_post_norm", "mrope_section"), ()),
    **dict.fromkeys(("apply_residual_connection_post_layernorm", "activation_func_clamp_value"), ()),
    **dict.fromkeys(("rotary_seq_len_interpolation_factor", "moe_router_topk_scaling_factor"), (1,)),
    **dict.fromkeys(("embedding_multiplier", "rotary_percent"), (1,)),
    "moe_router_score_function": ("softmax",),
    "softmax_type": ("vanilla",),
    "rope_type": ("rope",),
}
"""Arguments of which only these values, None and False mean a model that transformers has."""

_REQUIRED = {"normalization": "RMSNorm", "position_embedding_type": "rope"}

_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""The scaling of rotary embeddings that Megatron-Core has, beside the factor: constants in
https://github.com/NVIDIA/Megatron-LM/blob/core_r0.16.0/megatron/core/models/common/embeddings/rotary_pos_embedding.py"""


def check(args: Mapping[str, Any], step: Path) -> None:
    """Refuse arguments that would compute another model than transformers does."""
    required = {**_REQUIRED, "swiglu": not args.get("squared_relu")}
    for key, value in required.items():
        if args.get(key) != value:
            _refuse(f"{step} says {key} {args.get(key)!r}; only {key} {value!r} has an equal", key)
    for key, fine in _NEUTRAL.items():
        if args.get(key) not in (None, False, *fine):
            _refuse(f"{step} says {key} {args[key]!r}, which no family of ours computes", key)
    frequencies = args.get("moe_layer_freq")
    if args.get("num_experts") and frequencies not in (None, 1, [1] * count_of(args, "num_layers")):
        _refuse(
            f"{step} says moe_layer_freq {frequencies}: layers with and without experts", "moe_layer_freq"
        )


def family(args: Mapping[str, Any], step: Path) -> str:
    """The `model_type` of Hugging Face that computes what these arguments say."""
    words = ("num_experts", "qk_layernorm", "add_qkv_bias", "add_bias_linear")
    kinds: dict[tuple[bool, ...], str] = {
        (False, False, False, False): "llama",
        (False, False, False, True): "llama",
        (False, False, True, True): "llama",
        (False, False, True, False): "qwen2",
        (False, True, False, False): "qwen3",
        (True, False, False, False): "mixtral",
        (True, True, False, False): "qwen3_moe",
    }
    flags = tuple(bool(args.get(word)) for word in words)
    if flags not in kinds:
        flagged = ", ".join(word for word, flag in zip(words, flags, strict=True) if flag)
        _refuse(f"{step} says {flagged} together, which no family of ours has", flagged)
    kind = kinds[flags]
    special = {"squared_relu": "arcee"} if args.get("squared_relu") else {}
    special |= {"no_rope_freq": "smollm3"} if any(_without_rotary(args)) else {}
    if len(special) > 1 or (special and kind != "llama"):
        named = " and ".join(special)
        _refuse(f"{step} says {named} of a {kind} model, which no family of ours has", named)
    return special.popitem()[1] if special else kind


def _without_rotary(args: Mapping[str, Any]) -> list[int]:
    """1 for each layer whose attention turns nothing by its position, else 0."""
    layers, every = count_of(args, "num_layers"), args.get("no_rope_freq")
    if isinstance(every, int) and every > 0:
        return [int((layer + 1) % every == 0) for layer in range(layers)]
    if every and (not isinstance(every, list) or len(every) != layers or set(every) - {0, 1}):
        _refuse(f"no_rope_freq {every!r} says no 0 or 1 for each of {layers} layers", "no_rope_freq")
    return every or [0] * layers


def heads_of(config: Mapping[str, Any]) -> Heads:
    """How attention is divided, by a configuration of Hugging Face."""
    query = count_of(config, "num_attention_heads")
    key_value = int(config.get("num_key_value_heads") or query)
    size = int(config.get("head_dim") or count_of(config, "hidden_size") // query)
    return Heads(query, key_value, size)


def experts_of(config: Mapping[str, Any]) -> int:
    """How many experts a layer has, by a configuration of Hugging Face; 0 of a family without any."""
    if config.get("model_type") not in ("mixtral", "qwen3_moe"):
        return 0
    return int(config.get("num_experts") or config.get("num_local_experts") or 0)  # transformers 4, and 5


def to_hf(args: Mapping[str, Any], step: Path) -> dict[str, Any]:
    """`config.json` of what these arguments say, but for the vocabulary, which they know padded."""
    check(args, step)
    kind = family(args, step)
    hidden, query = count_of(args, "hidden_size"), count_of(args, "num_attention_heads")
    groups = args.get("num_query_groups") if args.get("group_query_attention") else None
    config: dict[str, Any] = {
        "architectures": [_CLASSES[kind]],
        "model_type": kind,
        "hidden_size": hidden,
        "num_hidden_layers": count_of(args, "num_layers"),
        "num_attention_heads": query,
        "num_key_value_heads": int(groups or query),
        "head_dim": int(args.get("kv_channels") or hidden // query),
        "intermediate_size": count_of(args, "ffn_hidden_size"),
        "max_position_embeddings": count_of(args, "max_position_embeddings"),
        "rms_norm_eps": float(need(args, "norm_epsilon")),
        "rope_theta": args.get("rotary_base", 10000),
        "hidden_act": "silu",
        "initializer_range": args.get("init_method_std", 0.02),
        "tie_word_embeddings": not args.get("untie_embeddings_and_output_weights", False),
    }
    if kind == "arcee":
        config["hidden_act"] = "relu2"
    if kind == "smollm3":
        config |= {"no_rope_layers": [1 - left_out for left_out in _without_rotary(args)]}
        config |= {"attention_bias": False, "mlp_bias": False, "pad_token_id": None}
    if kind in ("llama", "arcee"):
        config |= dict.fromkeys(("attention_bias", "mlp_bias"), bool(args.get("add_bias_linear")))
    if kind.startswith("qwen3"):
        config["attention_bias"] = False
    if args.get("use_rope_scaling"):
        factor = float(args.get("rope_scaling_factor") or 8.0)
        config["rope_scaling"] = {"rope_type": "llama3", "factor": factor, **_LLAMA3}
    return {**config, **(_experts(args, kind) if args.get("num_experts") else {})}


def _experts(args: Mapping[str, Any], kind: str) -> dict[str, Any]:
    inner = int(args.get("moe_ffn_hidden_size") or need(args, "ffn_hidden_size"))
    chosen = {"num_experts_per_tok": count_of(args, "moe_router_topk")}
    before = bool(args.get("moe_router_pre_softmax"))
    if kind == "mixtral":
        if before:
            _refuse("moe_router_pre_softmax weighs experts as no Mixtral does", "moe_router_pre_softmax")
        return {**chosen, "num_local_experts": int(args["num_experts"]), "intermediate_size": inner}
    chosen |= {"num_experts": int(args["num_experts"]), "moe_intermediate_size": inner}
    return {**chosen, "norm_topk_prob": not before, "decoder_sparse_step": 1, "mlp_only_layers": []}


def from_hf(config: dict[str, Any], rows: int, step: int) -> dict[str, Any]:
    """The arguments that Megatron-LM's `--use-checkpoint-args` takes, for a vocabulary of `rows`."""
    kind = str(need(config, "model_type"))
    _check_config(config, kind)
    return {
        "num_layers": count_of(config, "num_hidden_layers"),
        "hidden_size": count_of(config, "hidden_size"),
        "seq_length": count_of(config, "max_position_embeddings"),
        "max_position_embeddings": count_of(config, "max_position_embeddings"),
        "normalization": "RMSNorm",
        "norm_epsilon": config.get("rms_norm_eps", 1e-6),
        "apply_layernorm_1p": False,
        "hidden_dropout": 0.0,
        "untie_embeddings_and_output_weights": not FAMILIES[kind].is_tied(config),
        "make_vocab_size_divisible_by": 128,
        "padded_vocab_size": rows,
        "vocab_size": count_of(config, "vocab_size"),
        **_attention(config, kind),
        **_rotary(config, kind),
        **_feed_forward(config, kind),
        "tensor_model_parallel_size": 1,
        "pipeline_model_parallel_size": 1,
        "iteration": step,
        "ckpt_format": "torch_dist",
    }


def _attention(config: dict[str, Any], kind: str) -> dict[str, Any]:
    heads = heads_of(config)
    return {
        "num_attention_heads": heads.query,
        "group_query_attention": heads.grouped,
        "num_query_groups": heads.key_value,
        "kv_channels": heads.size,
        "add_qkv_bias": kind == "qwen2" or bool(config.get("mlp_bias")),
        "qk_layernorm": kind.startswith("qwen3"),
        "attention_dropout": 0.0,
    }


def _rotary(config: dict[str, Any], kind: str) -> dict[str, Any]:
    scaled = _scaling(config)
    return {
        "position_embedding_type": "rope",
        "add_position_embedding": True,
        "rotary_base": rope(config, "rope_theta", "rope_theta", 10000),
        "rotary_percent": 1.0,
        "rotary_interleaved": False,
        "use_rope_scaling": scaled is not None,
        "rope_scaling_factor": scaled or 8.0,
        "no_rope_freq": _no_rope(config) if kind == "smollm3" else None,
    }


def _feed_forward(config: dict[str, Any], kind: str) -> dict[str, Any]:
    dense = {
        "ffn_hidden_size": count_of(config, "intermediate_size"),
        "swiglu": kind != "arcee",
        "squared_relu": kind == "arcee",
        "add_bias_linear": bool(config.get("mlp_bias")),
        "num_experts": None,
    }
    if not experts_of(config):
        return dense
    return {
        **dense,
        "num_experts": experts_of(config),
        "moe_ffn_hidden_size": config.get(
            "intermediate_size" if kind == "mixtral" else "moe_intermediate_size"
        ),
        "moe_router_topk": config.get("num_experts_per_tok", 2),
        "moe_router_pre_softmax": kind == "qwen3_moe" and not config.get("norm_topk_prob", False),
        "moe_layer_freq": 1,
        "moe_router_score_function": "softmax",
    }


def _no_rope(config: Mapping[str, Any]) -> list[int] | None:
    """SmolLM3's layers without rotary embeddings, every fourth where its configuration is silent."""
    turned = config.get("no_rope_layers")
    if turned is None:
        every = int(config.get("no_rope_layer_interval") or 4)
        turned = [int((layer + 1) % every != 0) for layer in range(count_of(config, "num_hidden_layers"))]
    left_out = [int(not layer) for layer in turned]
    return left_out if any(left_out) else None


def unsaid(args: Mapping[str, Any]) -> Iterator[str]:
    """Options of Megatron-LM that mean another model, and that it takes from no checkpoint."""
    if args["squared_relu"]:
        yield "--squared-relu"
    if args["no_rope_freq"]:
        yield f"--no-rope-freq '{args['no_rope_freq']}'"


def _check_config(config: dict[str, Any], kind: str) -> None:
    neutral: dict[str, tuple[Any, ...]] = {
        "hidden_act": ("relu2",) if kind == "arcee" else ("silu", "swish"),
        "partial_rotary_factor": (1, 1.0),
        "use_sliding_window": (),
        "mlp_only_layers": ([],),
        "decoder_sparse_step": (1,),
        "attention_bias": (bool(config.get("mlp_bias")),),
        **({"sliding_window": ()} if kind in ("mistral", "mixtral") else {}),
    }
    for key, fine in neutral.items():
        value = rope(config, key, key, None)
        if value not in (None, False, *fine):
            _refuse(f"Megatron's models have no {key} {value!r}", key)
    if config.get("mlp_bias") and not config.get("attention_bias"):
        _refuse("Megatron has biases in all linear layers or in none", "mlp_bias")


def _scaling(config: dict[str, Any]) -> float | None:
    """The factor of Llama 3's scaling, which is the only one; its other numbers are Megatron's own."""
    settings = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "default":
        return None
    wrong = next((key for key, value in _LLAMA3.items() if settings.get(key) != value), None)
    if kind != "llama3" or wrong:
        setting = f"{wrong} {settings.get(wrong)}" if kind == "llama3" and wrong else f"rope_type {kind}"
        _refuse(f"Megatron-Core's rotary embeddings have no {setting}", "rope_scaling")
    return float(settings["factor"])


def _refuse(message: str, where: str) -> None:
    raise ConfigError.of("checkpoint-unsupported", message, where=where)
