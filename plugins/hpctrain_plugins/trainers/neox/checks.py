"""What NeoXArgs refuses, and what it takes without a word, known before the queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from hpctrain_plugins.trainers.external.config import Config, Fault, Machine
from hpctrain_plugins.trainers.external.kinds import fits, misfit, trap_faults, unknown
from hpctrain_plugins.trainers.neox import batch, data
from hpctrain_plugins.trainers.neox.keys import KINDS
from hpctrain_plugins.trainers.yaml_file import Path

_REQUIRED = ("num_layers", "hidden_size", "num_attention_heads", "max_position_embeddings")
_DEFAULT_LR = 0.001
_PRECISIONS = {"bf16": "bfloat16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_WITHOUT_HEADS = ("mamba", "rwkv")


def faults(config: Config, machine: Machine, *, upstream: bool = True) -> Iterator[Fault]:
    """Everything at once; a fork (not `upstream`) may have keys of its own."""
    yield from _types(config, upstream)
    yield from trap_faults(config, _kinds(config))
    yield from batch.faults(config, machine)
    yield from _required(config)
    yield from _shape(config)
    yield from _attention(config)
    yield from _precision(config)
    yield from _rates(config)
    yield from _saving(config)
    yield from data.faults(config)


def rate(config: Config) -> float:
    """The peak learning rate, as NeoX takes it."""
    value = config.get("optimizer", "params", "lr", default=_DEFAULT_LR)
    return float(value) if isinstance(value, (int, float)) else _DEFAULT_LR


def attention(config: Config) -> list[str]:
    """The kind of every layer: `[[["flash"], 32]]` as 32 words."""
    entries = config.get("attention_config")
    layers = config.number("num_layers")
    if not isinstance(entries, list):
        return ["global"] * layers
    layer_kinds: list[str] = []
    for item in entries:
        if isinstance(item, str):
            layer_kinds.append(item)
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], list):
            kinds = [str(kind) for kind in item[0]]
            times = item[1] if isinstance(item[1], int) else layers // max(1, len(kinds))
            layer_kinds += kinds * (times if item[1] == "all" or isinstance(item[1], int) else 0)
    return layer_kinds


def _kinds(config: Config) -> dict[Path, str]:
    """Kinds by path; what stands below `optimizer` are numbers of torch."""
    params: dict[Path, str] = {
        ("optimizer", "params", key): "float" for key in config.table("optimizer", "params")
    }
    return {**{(key,): kind for key, kind in KINDS.items()}, **params}


def _types(config: Config, upstream: bool) -> Iterator[Fault]:
    trapped = {path for path, _ in config.traps()}
    for key, value in config.data.items():
        if key not in KINDS:
            yield attrs.evolve(unknown((key,), KINDS), fatal=upstream)
        elif not fits(_lower(value), KINDS[key].lower()) and (key,) not in trapped:
            yield _misfit(key, value)
    for name in ("optimizer", "scheduler"):
        for key in ("type", "params"):
            if config.get(name) is not None and key not in config.table(name):
                yield Fault(code="trainer-missing", message=f"{name} has no {key}", path=(name,))
    for name in ("fp16", "amp", "flops_profiler"):
        if config.get(name) is not None and "enabled" not in config.table(name):
            yield Fault(code="trainer-missing", message=f"{name} has no enabled", path=(name,))


def _misfit(key: str, value: Any) -> Fault:
    """NeoX trains in fp32 without a word where `precision` is a word that it does not know."""
    fault = misfit((key,), value, KINDS[key])
    precision = _PRECISIONS.get(value) if key == "precision" and isinstance(value, str) else None
    return attrs.evolve(fault, hint=f"precision: {precision}") if precision else fault


def _lower(value: Any) -> Any:
    """NeoX takes a word of a choice in any case."""
    return value.lower() if isinstance(value, str) else value


def _required(config: Config) -> Iterator[Fault]:
    for key in _REQUIRED:
        if config.get(key) is None:
            yield Fault(code="trainer-missing", message=f"{key} is missing", path=(key,))


def _shape(config: Config) -> Iterator[Fault]:
    hidden, heads = config.number("hidden_size"), config.number("num_attention_heads")
    kinds = set(attention(config))
    if heads and hidden % heads and "mamba" not in kinds:
        message = f"hidden_size {hidden} cannot be divided among {heads} heads"
        yield Fault(code="trainer-shape", message=message, path=("hidden_size",))
    length, longest = config.number("seq_length"), config.number("max_position_embeddings")
    if longest and length > longest:
        message = f"seq_length {length} is longer than max_position_embeddings {longest}"
        yield Fault(code="trainer-shape", message=message, path=("seq_length",))
    mp, layers = config.number("model_parallel_size", default=1), config.number("num_layers")
    if heads and mp > 1 and heads % mp:
        message = f"num_attention_heads {heads} cannot be shared by model_parallel_size {mp}"
        yield Fault(code="trainer-shape", message=message, path=("num_attention_heads",))
    if config.get("sequence_parallel") and mp > 1 and length % mp:
        message = (
            f"seq_length {length} cannot be shared by model_parallel_size {mp}, as sequence_parallel does"
        )
        yield Fault(code="trainer-shape", message=message, path=("seq_length",))
    pp = config.number("pipe_parallel_size")
    if layers and pp > layers:
        message = f"{pp} pipeline stages for {layers} layers: some would have none"
        yield Fault(code="trainer-shape", message=message, path=("pipe_parallel_size",))
    elif layers and pp > 1 and layers % pp:
        message = f"{layers} layers in {pp} pipeline stages are not equal: the slowest sets the pace"
        yield Fault(code="trainer-shape", message=message, path=("pipe_parallel_size",), fatal=False)


def _attention(config: Config) -> Iterator[Fault]:
    kinds, layers = attention(config), config.number("num_layers")
    if config.get("attention_config") is not None and len(kinds) != layers:
        message = f"attention_config is for {len(kinds)} layers, num_layers is {layers}"
        yield Fault(code="trainer-shape", message=message, path=("attention_config",))
    heads, kv = config.number("num_attention_heads"), config.number("num_kv_heads")
    mp = config.number("model_parallel_size", default=1)
    if kv and heads % kv:
        message = f"num_attention_heads {heads} is not a multiple of num_kv_heads {kv}"
        yield Fault(code="trainer-shape", message=message, path=("num_kv_heads",))
    elif kv and kv < heads and kv % max(1, mp):
        message = f"num_kv_heads {kv} cannot be shared by model_parallel_size {mp}"
        yield Fault(code="trainer-shape", message=message, path=("num_kv_heads",))
    for kind in _WITHOUT_HEADS:
        if kind in kinds and config.number("zero_optimization", "stage") == 3:
            message = f"{kind} layers do not train with ZeRO stage 3"
            yield Fault(code="trainer-shape", message=message, path=("zero_optimization", "stage"))
    if "rwkv" in kinds and mp != 1:
        message = f"rwkv layers need model_parallel_size 1, not {mp}"
        yield Fault(code="trainer-shape", message=message, path=("model_parallel_size",))
    if config.number("moe_num_experts") > 1 and config.number("zero_optimization", "stage") >= 2:
        message = "a mixture of experts needs ZeRO stage 0 or 1"
        yield Fault(code="trainer-shape", message=message, path=("zero_optimization", "stage"))


def _precision(config: Config) -> Iterator[Fault]:
    precision = config.text("precision").lower()
    half = {"fp16": "fp16", "bf16": "bfloat16"}
    for key, expected in half.items():
        if config.get(key, "enabled") is True and precision and precision != expected:
            message = f"precision {precision} contradicts {key}.enabled"
            yield Fault(
                code="trainer-conflict", message=message, path=("precision",), hint=f"precision: {expected}"
            )
        precision = precision or (expected if config.get(key, "enabled") is True else "")
    zero: Any = config.get("zero_optimization")
    if (zero is None and precision == "bfloat16") or (isinstance(zero, dict) and "stage" not in zero):
        message = "zero_optimization has no stage, and NeoX stops at it with a TypeError or KeyError"
        path = ("zero_optimization",) if zero is not None else ("precision",)
        yield Fault(code="trainer-missing", message=message, path=path, hint="zero_optimization: {stage: 1}")
    pipes, stage = config.number("pipe_parallel_size"), config.number("zero_optimization", "stage")
    if (
        precision == "bfloat16"
        and stage
        and pipes > 1
        and config.text("data_types", "grad_accum_dtype") != "fp32"
    ):
        message = "ZeRO with bfloat16 and pipeline stages adds gradients up in bfloat16"
        hint = "data_types: {grad_accum_dtype: fp32}"
        yield Fault(
            code="trainer-shape", message=message, path=("pipe_parallel_size",), hint=hint, fatal=False
        )


def _rates(config: Config) -> Iterator[Fault]:
    least = config.get("min_lr", default=0.0)
    if isinstance(least, (int, float)) and least > rate(config):
        message = f"min_lr {least} is more than the rate {rate(config)}"
        yield Fault(code="trainer-steps", message=message, path=("min_lr",))
    iters, decay = config.number("train_iters"), config.number("lr_decay_iters")
    if iters and decay and decay < iters:
        message = f"the rate is at its end after {decay} of {iters} steps"
        yield Fault(code="trainer-steps", message=message, path=("lr_decay_iters",), fatal=False)
    share = config.get("warmup", default=0.0)
    if isinstance(share, (int, float)) and share >= 1:
        message = f"warmup is a share of all steps, and {share} leaves none"
        yield Fault(code="trainer-steps", message=message, path=("warmup",), hint="warmup: 0.01")


def _saving(config: Config) -> Iterator[Fault]:
    often, extra = config.get("checkpoint_factor"), config.get("extra_save_iters")
    if config.get("save") is not None and often is None and extra is None:
        message = "save needs checkpoint_factor or extra_save_iters"
        yield Fault(code="trainer-missing", message=message, path=("save",), hint="checkpoint_factor: 1000")
