"""Megatron-Core's own files: read with every bit and the same logits; it loads every bit of ours."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain_plugins.checkpoints import registry
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import NUMBERED, SINGLETON, ConvertOptions
from tests.checkpoints.conftest import Array, TorchRun, read_safetensors

pytestmark = pytest.mark.torch

_LAYERS, _HIDDEN, _INNER, _HEADS, _GROUPS, _EXPERTS = 4, 32, 48, 8, 4, 4
_SHAPE: dict[str, Any] = {
    "num_layers": _LAYERS,
    "hidden_size": _HIDDEN,
    "ffn_hidden_size": _INNER,
    "num_attention_heads": _HEADS,
    "num_query_groups": _GROUPS,
}
_SPARSE = {"num_experts": _EXPERTS, "moe_ffn_hidden_size": _INNER}
_MODELS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama3": {"use_rope_scaling": True, "rotary_base": 500000, "kv_channels": 16},
    "qwen2": {"add_qkv_bias": True, "untie_embeddings_and_output_weights": False},
    "qwen3": {"qk_layernorm": True, "kv_channels": 16},
    "arcee": {"swiglu": False, "squared_relu": True},
    "smollm3": {"no_rope_freq": 4},
    "mixtral": _SPARSE,
    "qwen3_moe": {**_SPARSE, "qk_layernorm": True, "moe_router_pre_softmax": True},
}
_WHOLE = {name: {**_SHAPE, **model, "fp32": True} for name, model in _MODELS.items()}
"""On one rank, in fp32: their logits are compared."""
_SPLIT = {
    "llama-tp2-pp2": {**_SHAPE, "tp": 2, "pp": 2},
    "llama-tp4": {**_SHAPE, "tp": 4},
    "llama-pp4": {**_SHAPE, "pp": 4},
    "qwen2-pp2": {**_SHAPE, **_MODELS["qwen2"], "pp": 2},
    "mixtral-ep2": {**_SHAPE, **_SPARSE, "ep": 2},
    "mixtral-ep4": {**_SHAPE, **_SPARSE, "ep": 4},
    "llama-numbered": {**_SHAPE, "numbered": True},
    "llama-singleton": {**_SHAPE, "singleton": True, "tp": 2},
    "mixtral-numbered": {**_SHAPE, **_SPARSE, "numbered": True},
    "mixtral-singleton": {**_SHAPE, **_SPARSE, "singleton": True, "ep": 2},
}
_LEGACY = {
    "legacy-llama": {**_SHAPE, "legacy": True},
    "legacy-qwen3-tp2-pp2": {**_SHAPE, **_MODELS["qwen3"], "tp": 2, "pp": 2, "legacy": True},
    "legacy-mixtral-ep2-pp2": {**_SHAPE, **_SPARSE, "pp": 2, "ep": 2, "legacy": True},
}
"""A file for each rank, in the format before."""
CASES: dict[str, dict[str, Any]] = {**_WHOLE, **_SPLIT, **_LEGACY}


@pytest.fixture(scope="module")
def saved(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("megatron")
    torch_run("megatron_make.py", folder, json.dumps(CASES))
    for name in CASES:
        convert(folder / name, "hf", folder / f"{name}-hf", ConvertOptions(verify="roundtrip", fsync=False))
    return folder


def _number(key: str, *shape: int) -> Array:
    """The whole tensor of a key, as megatron_here.py makes it."""
    values = np.random.default_rng(zlib.crc32(key.encode())).standard_normal(shape, np.float32) * 0.07
    values = values.astype(np.float32) + ("layernorm" in key or "layer_norm" in key)
    bits: Array = values.astype(np.float32).view(np.uint32) & 0xFFFF0000
    return bits.view(np.float32)


def _want(settings: dict[str, Any]) -> dict[str, Array]:
    """The tensors of Hugging Face by Megatron's own rules, in numpy: no line of it is the converter's."""
    out = {"model.embed_tokens.weight": _number("embedding.word_embeddings.weight", 128, 32)}
    out["model.norm.weight"] = _number("decoder.final_layernorm.weight", 32)
    if settings.get("untie_embeddings_and_output_weights", True):
        out["lm_head.weight"] = _number("output_layer.weight", 128, 32)
    feed_forward = _want_experts if settings.get("num_experts") else _want_dense
    for layer in range(_LAYERS):
        at = partial(_in_layer, settings, layer)
        parts = {**_want_attention(settings, at), **feed_forward(settings, at)}
        parts["input_layernorm.weight"] = at("self_attention.linear_qkv.layer_norm_weight", 32)
        parts["post_attention_layernorm.weight"] = at("mlp.linear_fc1.layer_norm_weight", 32)
        out |= {f"model.layers.{layer}.{name}": part for name, part in parts.items()}
    return out


def _in_layer(settings: dict[str, Any], layer: int, rest: str, *shape: int) -> Array:
    if settings.get("numbered") or settings.get("singleton"):
        return _number(f"decoder.layers.{layer}.{rest}", *shape)
    stacked: Array = _number(f"decoder.layers.{rest}", _LAYERS, *shape)[layer]
    return stacked


def _want_attention(settings: dict[str, Any], at: Callable[..., Array]) -> dict[str, Array]:
    size, queries = settings.get("kv_channels", _HIDDEN // _HEADS), _HEADS // _GROUPS
    out = {"self_attn.o_proj.weight": at("self_attention.linear_proj.weight", 32, _HEADS * size)}
    kinds: dict[str, tuple[int, ...]] = {"weight": (_HIDDEN,)}
    kinds |= {"bias": ()} if settings.get("add_qkv_bias") else {}
    for kind, cols in kinds.items():
        fused = at(f"self_attention.linear_qkv.{kind}", _GROUPS * (queries + 2) * size, *cols)
        groups = fused.reshape(_GROUPS, queries + 2, size, *cols)
        parts = (groups[:, :queries], groups[:, queries], groups[:, queries + 1])
        for letter, part in zip("qkv", parts, strict=True):
            out[f"self_attn.{letter}_proj.{kind}"] = part.reshape(-1, *cols)
    for letter in "qk" if settings.get("qk_layernorm") else "":
        out[f"self_attn.{letter}_norm.weight"] = at(f"self_attention.{letter}_layernorm.weight", size)
    return out


def _want_dense(settings: dict[str, Any], at: Callable[..., Array]) -> dict[str, Array]:
    if settings.get("squared_relu"):
        ungated = {
            "up": at("mlp.linear_fc1.weight", _INNER, 32),
            "down": at("mlp.linear_fc2.weight", 32, _INNER),
        }
        return {f"mlp.{name}_proj.weight": part for name, part in ungated.items()}
    if settings.get("singleton"):
        gate, up = (at(f"mlp.linear_fc1.weight_{letter}", _INNER, 32) for letter in "wv")
    else:
        gate, up = np.split(at("mlp.linear_fc1.weight", 2 * _INNER, 32), 2)
    down = at("mlp.linear_fc2.weight", 32, _INNER)
    return {"mlp.gate_proj.weight": gate, "mlp.up_proj.weight": up, "mlp.down_proj.weight": down}


def _want_experts(settings: dict[str, Any], at: Callable[..., Array]) -> dict[str, Array]:
    qwen = ("mlp", "gate_proj", "up_proj", "down_proj")
    inside, *names = qwen if settings.get("qk_layernorm") else ("block_sparse_moe", "w1", "w3", "w2")
    out = {f"{inside}.gate.weight": at("mlp.router.weight", _EXPERTS, 32)}
    for expert, parts in enumerate(_want_parts(settings, at)):
        for name, part in zip(names, parts, strict=True):
            out[f"{inside}.experts.{expert}.{name}.weight"] = part
    return out


def _want_parts(settings: dict[str, Any], at: Callable[..., Array]) -> Iterator[tuple[Array, ...]]:
    """Gate, up and down of each expert."""
    if settings.get("singleton"):
        for expert in range(_EXPERTS):
            keys = (f"mlp.experts.experts.{expert}.linear_fc{end}" for end in ("1.weight_w", "1.weight_v"))
            down = at(f"mlp.experts.experts.{expert}.linear_fc2.weight", 32, _INNER)
            yield *(at(key, _INNER, 32) for key in keys), down
        return
    first = at("mlp.experts.experts.linear_fc1.weight", _EXPERTS, 2 * _INNER, 32)
    second = at("mlp.experts.experts.linear_fc2.weight", _EXPERTS, 32, _INNER)
    for expert in range(_EXPERTS):
        yield *np.split(first[expert], 2), second[expert]


def _read(folder: Path) -> dict[str, Array]:
    """Every tensor as float32, which holds what bf16 holds."""
    return {
        name: (array.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else array
        for name, (dtype, array) in read_safetensors(folder).items()
    }


@pytest.mark.parametrize("name", CASES)
def test_every_bit_is_read(saved: Path, name: str) -> None:
    kind = "megatron-legacy" if name in _LEGACY else "megatron"
    assert registry.detect(saved / name) == registry.detect(saved / name / "iter_0000007") == kind
    have, want = _read(saved / f"{name}-hf"), _want(CASES[name])
    assert set(have) == set(want)
    assert [n for n in want if have[n].tobytes() != want[n].tobytes()] == []
    record = json.loads((saved / f"{name}-hf/conversion.json").read_text())
    assert (record["shapes"], record["exactness"], record["verified"]) == (
        "configuration",
        "exact",
        "roundtrip",
    )


def test_transformers_computes_what_megatron_core_computes(saved: Path, torch_run: TorchRun) -> None:
    """Megatron's own logits against those of the folder that was written, by code that shares nothing."""
    own = {name: json.loads((saved / name / "logits.json").read_text()) for name in _WHOLE}
    asked = {name: [str(saved / f"{name}-hf"), own[name]["tokens"]] for name in _WHOLE}
    theirs = json.loads(torch_run("logits_of.py", json.dumps(asked)).splitlines()[-1])
    apart = {n: float(np.abs(np.array(own[n]["logits"]) - np.array(theirs[n])).max()) for n in _WHOLE}
    assert {name: value for name, value in apart.items() if value > 1e-5} == {}


_LOADS = {
    "llama": [{}, {"tp": 2, "pp": 2}, {"tp": 4}],
    "qwen2": [{"pp": 2}],
    "qwen3": [{"tp": 2}],
    "arcee": [{"tp": 2}],
    "smollm3": [{"pp": 2}],
    "mixtral": [{}, {"ep": 2}, {"ep": 4}],
    "qwen3_moe": [{"pp": 2}],
}
_FORMS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "llama-numbered": (NUMBERED, [{"tp": 2}, {"pp": 2}]),
    "llama-singleton": (SINGLETON, [{"tp": 2, "pp": 2}, {"tp": 1}]),
    "mixtral-numbered": (NUMBERED, [{"ep": 2}]),
    "mixtral-singleton": (SINGLETON, [{"ep": 2}, {"ep": 1}]),
}
"""The other forms of keys, each written from what was read of it."""


@pytest.fixture(scope="module")
def loaded(saved: Path, torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder, jobs = tmp_path_factory.mktemp("back"), {}
    for name, ranks in _LOADS.items():
        options = ConvertOptions(verify="roundtrip", tp=2 if name == "qwen3" else 1, fsync=False)
        convert(saved / f"{name}-hf", "megatron", folder / name, options)
        for number, sizes in enumerate(ranks):
            step = str(folder / name / "release")
            jobs[f"{name}-{number}"] = {**_WHOLE[name], **sizes, "step": step}
    for name, (form, ranks) in _FORMS.items():
        options = ConvertOptions(verify="roundtrip", layer_keys=form, tp=2, fsync=False)
        convert(saved / f"{name}-hf", "megatron", folder / name, options)
        for number, sizes in enumerate(ranks):
            step = str(folder / name / "release")
            jobs[f"{name}-{number}"] = {**CASES[name], **sizes, "step": step}
    out: dict[str, Any] = json.loads(
        torch_run("megatron_load.py", folder / "loads", json.dumps(jobs)).splitlines()[-1]
    )
    return out


_EVERY_LOAD = {**_LOADS, **{name: ranks for name, (_, ranks) in _FORMS.items()}}


@pytest.mark.parametrize("name", [f"{n}-{i}" for n, ranks in _EVERY_LOAD.items() for i in range(len(ranks))])
def test_megatron_core_loads_every_bit_of_what_was_written(loaded: dict[str, Any], name: str) -> None:
    assert loaded[name]["wrong"] == []
    assert len(loaded[name]["keys"]) >= 9
