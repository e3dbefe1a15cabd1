"""Whether shapes follow from the configuration, for models that transformers itself saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats import hf
from hpctrain_plugins.checkpoints.formats.hf import check
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun

WIDE = {"head_dim": 16}
BIASED = {"attention_bias": True, "mlp_bias": True}
TIED = {"tie_word_embeddings": True}
MIXTURE = {"num_experts": 4, "moe_intermediate_size": 24, "num_experts_per_tok": 2}
TABLED: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {}),
    "llama biased": ("LlamaForCausalLM", BIASED),
    "llama wide": ("LlamaForCausalLM", WIDE | TIED),
    "llama headless": ("LlamaModel", {}),
    "mistral": ("MistralForCausalLM", {}),
    "qwen2": ("Qwen2ForCausalLM", {}),
    "qwen3": ("Qwen3ForCausalLM", WIDE),
    "qwen3 biased": ("Qwen3ForCausalLM", TIED | {"attention_bias": True}),
    "qwen3 headless": ("Qwen3Model", {}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", WIDE | MIXTURE),
    "gemma": ("GemmaForCausalLM", WIDE),
    "gemma2": ("Gemma2ForCausalLM", WIDE),
    "gemma3_text": ("Gemma3ForCausalLM", WIDE),
    "granite": ("GraniteForCausalLM", BIASED),
    "arcee": ("ArceeForCausalLM", BIASED),
    "olmo": ("OlmoForCausalLM", {}),
    "olmo2": ("Olmo2ForCausalLM", {}),
    "olmo3": ("Olmo3ForCausalLM", {}),
    "olmoe": ("OlmoeForCausalLM", {"num_experts": 4, "num_experts_per_tok": 2}),
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 4}),
    "phi3": ("Phi3ForCausalLM", {}),
    "smollm3": ("SmolLM3ForCausalLM", {}),
    "gpt_neox": ("GPTNeoXForCausalLM", {}),
    "gpt_neox unbiased": ("GPTNeoXForCausalLM", {"attention_bias": False}),
    "gpt_neox headless": ("GPTNeoXModel", {}),
}
UNPROVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "a head of its own": ("LlamaForSequenceClassification", {"num_labels": 3}),
    "layers that differ": ("Qwen3MoeForCausalLM", WIDE | MIXTURE | {"mlp_only_layers": [1]}),
    "no table": ("StableLmForCausalLM", {}),
}

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    torch_run("families_make.py", folder, json.dumps(TABLED | UNPROVEN))
    return folder


def test_every_table_is_compared_with_what_transformers_saves() -> None:
    assert {name.partition(" ")[0] for name in TABLED} == set(FAMILIES)


@pytest.mark.parametrize("name", TABLED)
def test_every_shape_follows_and_every_damage_is_refused(folder: Path, name: str) -> None:
    path = folder / name
    model = hf.read(path, ConvertOptions())
    assert check.check(model, path)
    for tensor in list(model.tensors):
        harmed = attrs.evolve(model, tensors=dict(model.tensors))
        whole = harmed.tensors.pop(tensor)
        with pytest.raises(IntegrityError, match=r"is missing from|and not in layer"):
            check.check(harmed, path)
        cut = (*whole.shape[:-1], whole.shape[-1] - 1)
        harmed.tensors[tensor] = attrs.evolve(whole, shape=cut)
        with pytest.raises(IntegrityError, match=r"has shape"):
            check.check(harmed, path)


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_the_configuration_does_not_say_is_called_unproven(
    folder: Path, tmp_path: Path, name: str
) -> None:
    report = convert(folder / name, "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
    assert report.shapes == "unproven"
