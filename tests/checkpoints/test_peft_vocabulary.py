"""Adapters on the embedding or the head compute, when merged, what the live adapter model computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun, random_tensors, read_safetensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, make
from tests.checkpoints.test_peft import adapter

Q: dict[str, Any] = {"target_modules": ["q_proj"]}
BOTH = {"modules_to_save": ["embed_tokens", "lm_head"]}
CASES: dict[str, dict[str, Any]] = {
    "tied, embedding saved": {"tied": True, **Q, "modules_to_save": ["embed_tokens"]},
    "tied, embedding adapted": {"tied": True, "target_modules": ["q_proj", "embed_tokens"]},
    "tied, only embedding adapted": {"tied": True, "target_modules": ["embed_tokens"]},
    "tied, head adapted": {"tied": True, "target_modules": ["q_proj", "lm_head"]},
    "tied, both saved": {"tied": True, **Q, **BOTH},
    "tied together": {
        "tied": True,
        "target_modules": ["q_proj", "embed_tokens"],
        "ensure_weight_tying": True,
    },
    "tied, grown": {"tied": True, "added": 8, **Q},
    "grown": {"added": 8, **Q},
    "grown and saved": {"added": 8, **Q, **BOTH},
}


@pytest.mark.torch
def test_logits_are_those_of_the_live_adapter(torch_run: TorchRun, tmp_path: Path) -> None:
    jobs = json.dumps({name: [str(tmp_path / name), spec] for name, spec in CASES.items()})
    torch_run("peft_vocabulary.py", "make", jobs)
    for name, spec in CASES.items():
        report = convert(
            tmp_path / name / "adapter", "hf", tmp_path / name / "out", ConvertOptions(verify="roundtrip")
        )
        one_side = spec.get("tied") and len(spec.get("modules_to_save", ())) < 2 and "added" not in spec
        if one_side and "ensure_weight_tying" not in spec:
            assert report.decisions["untied"] == "lm_head.weight", name
        assert report.decisions.get("vocab_size") == (104 if "added" in spec else None), name
    errors = json.loads(torch_run("peft_vocabulary.py", "errors", jobs))
    assert {name: e for name, e in errors.items() if not e < 1e-5} == {}
    assert set(errors) == set(CASES)


def test_half_a_resized_vocabulary_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    shapes = {f"{module}.lora_A.weight": (4, 32), f"{module}.lora_B.weight": (32, 4)}
    grown = {**shapes, "base_model.model.model.embed_tokens.weight": (168, 32)}
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", grown))
    with pytest.raises(HpctrainError, match=r"168 rows of model.embed_tokens.weight, but lm_head.weight has"):
        convert(folder, "hf", tmp_path / "out", ConvertOptions())


def test_a_saved_module_of_another_width_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    tensors = {"base_model.model.model.norm.weight": (16,)}
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", tensors))
    with pytest.raises(HpctrainError, match=r"model.norm.weight has shape \[16\], in the base \[32\]"):
        convert(folder, "hf", tmp_path / "out", ConvertOptions())


def test_a_tied_gpt_neox_gets_its_own_head_too(tmp_path: Path) -> None:
    make(tmp_path / "base", {**GPT_NEOX, "tie_word_embeddings": True})
    folder = tmp_path / "adapter"
    folder.mkdir()
    tensors = {"base_model.model.gpt_neox.embed_in.weight": (160, 32)}
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "BF16", tensors))
    settings = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": "../base"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    convert(folder, "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
    base, out = read_safetensors(tmp_path / "base"), read_safetensors(tmp_path / "out")
    assert (out["embed_out.weight"][1] == base["gpt_neox.embed_in.weight"][1]).all()
    assert (out["gpt_neox.embed_in.weight"][1] != base["gpt_neox.embed_in.weight"][1]).any()
    assert json.loads((tmp_path / "out/config.json").read_text())["tie_word_embeddings"] is False


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens"),
        ({"kasa_config": {"r": 2}}, "kasa_config"),
        ({"monteclora_config": {"x": 1}}, "monteclora_config"),
        ({"velora_config": {"x": 1}}, "velora_config"),
        ({"a_setting_of_next_year": True}, "a_setting_of_next_year"),
        ({"init_lora_weights": "mifa"}, "init_lora_weights mifa"),
    ],
)
def test_a_setting_that_no_merge_knows_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    with pytest.raises(HpctrainError, match=key):
        convert(adapter(tmp_path, **changes), "hf", tmp_path / "out", ConvertOptions())
