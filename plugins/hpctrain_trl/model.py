"""The model and its tokenizer, and the choices that depend on the machine, each with its reason."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpctrain_trl.environment import accelerator
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True)
class Choices:
    """The choices that the settings leave to the machine."""

    dtype: str
    attention: str
    packing: bool
    strategy: str
    compile: bool
    recompute: bool


def choose(settings: Settings, say: Say) -> Choices:
    """Decide type, attention, packing and compilation, and print why."""
    gpu = accelerator() is not None
    flash = gpu and importlib.util.find_spec("flash_attn") is not None
    dtype = _dtype(settings, gpu, say)
    attention = settings.attention
    if attention == "auto":
        attention = "flash_attention_2" if flash and dtype != "float32" else "sdpa"
        why = (
            "it is installed and the weights are bfloat16"
            if "flash" in attention
            else ("no GPU" if not gpu else "no flash-attn, or float32 weights, which it cannot do")
        )
        say(f"chosen: attention {attention}: {why}")
    packing = settings.packing == "on"
    if settings.packing == "auto":
        packing = settings.method == "pretrain" or "flash" in attention
        why = (
            "plain text may be cut anywhere"
            if settings.method == "pretrain"
            else f"{attention} {'keeps rows apart' if packing else 'would let rows see each other'}"
        )
        say(f"chosen: packing {'on' if packing else 'off'}: {why}")
    strategy = "wrapped" if settings.method == "pretrain" else "bfd"
    recompute = settings.activation_checkpointing
    say(f"chosen: activations {'computed again: a third more work' if recompute else 'kept: nothing asked'}")
    return Choices(dtype, attention, packing, strategy, _compiles(settings, say), recompute)


def _compiles(settings: Settings, say: Say) -> bool:
    """torch.compile needs a compiler on the node: Triton's on a GPU, C++ on a processor."""
    if not settings.compile:
        say("chosen: compile off: nothing asked for it, and it takes minutes before the first step")
        return False
    compiler = importlib.util.find_spec("triton") if accelerator() else shutil.which("c++")
    why = "asked for, and a compiler is here" if compiler else "no compiler on this node"
    say(f"chosen: compile {'on' if compiler else 'off'}: {why}")
    return compiler is not None


def _dtype(settings: Settings, gpu: bool, say: Say) -> str:
    if settings.dtype != "auto":
        return settings.dtype
    if not gpu:
        say("chosen: dtype float32: no GPU")
        return "float32"
    if settings.method == "lora" or settings.zero_stage:
        why = "frozen weights need no more" if settings.method == "lora" else "DeepSpeed keeps copies"
        say(f"chosen: dtype bfloat16: {why}")
        return "bfloat16"
    say("chosen: dtype float32 under bfloat16 autocast: small updates would be lost in bfloat16")
    return "float32"


def tokenizer(settings: Settings) -> Any:
    """The tokenizer, with a token to pad with."""
    from transformers import AutoTokenizer

    where = settings.tokenizer or settings.model
    try:
        loaded = AutoTokenizer.from_pretrained(where)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BadConfig("tokenizer", f"no tokenizer in {where}: {_first_line(error)}") from error
    if loaded.pad_token is None:
        if loaded.eos_token is None:
            raise BadConfig("pad-token", f"the tokenizer in {where} has no pad and no end token")
        loaded.pad_token = loaded.eos_token
    return loaded


def load(settings: Settings, choices: Choices, tokenizer: Any) -> Any:
    """The model, trained or from random weights."""
    import torch
    from transformers import AutoModelForCausalLM

    dtype = getattr(torch, choices.dtype)
    how = {"dtype": dtype, "attn_implementation": choices.attention}
    try:
        if settings.from_scratch:
            model = AutoModelForCausalLM.from_config(_config(settings), **how)
        else:
            model = AutoModelForCausalLM.from_pretrained(settings.model, **how)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise BadConfig("model", f"{settings.model} cannot be loaded: {_first_line(error)}") from error
    _agrees(model.config, settings.config)
    rows = model.get_input_embeddings().weight.shape[0]
    if 0 < rows < len(tokenizer):
        message = f"the tokenizer has {len(tokenizer)} tokens, the model only {rows}"
        raise BadConfig("vocabulary", message)
    for config in (model.config, model.generation_config) if settings.from_scratch else ():
        for token in ("pad_token_id", "eos_token_id", "bos_token_id"):
            setattr(config, token, getattr(tokenizer, token))
    model.config.use_cache = False
    return model


def adapters(settings: Settings) -> Any:
    """The LoRA configuration, or None when every weight is trained."""
    if settings.method != "lora":
        return None
    from peft import LoraConfig

    targets = settings.lora_target_modules
    return LoraConfig(
        r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=targets[0] if targets == ("all-linear",) else list(targets),
        task_type="CAUSAL_LM",
    )


def shape_of(model: Any) -> dict[str, Any]:
    """The model's configuration as plain data."""
    shape: dict[str, Any] = model.config.to_dict()
    return shape


def _config(settings: Settings) -> Any:
    """The configuration to build from: the settings' own, or the folder's config.json."""
    from transformers import AutoConfig

    if not settings.config:
        return AutoConfig.from_pretrained(settings.model)
    values = dict(settings.config)
    kind = values.pop("model_type", None)
    if not isinstance(kind, str):
        raise BadConfig("model-type", "config needs model_type", 'model_type = "qwen3"')
    return AutoConfig.for_model(kind, **values)


def _agrees(real: Any, stated: Mapping[str, Any]) -> None:
    """Refuse a model that is not of the shape the settings state: the plan's numbers would be wrong."""
    for name, value in stated.items():
        actual = getattr(real, name, None)
        if isinstance(value, (int, str)) and actual != value:
            raise BadConfig("shape", f"config.{name} is {value!r}, the model has {actual!r}")


def saved_config(folder: Path) -> dict[str, Any]:
    """The config.json or adapter_config.json of a saved folder; empty where there is none."""
    config: dict[str, Any] = {}
    for name in ("config.json", "adapter_config.json"):
        path = folder / name
        if path.is_file():
            config |= json.loads(path.read_text(encoding="utf-8"))
    return config


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
