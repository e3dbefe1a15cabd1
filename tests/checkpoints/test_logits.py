"""`--verify logits`: what the trainer's ranks compute is what Hugging Face's model computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats import hf as hf_format
from hpctrain_plugins.checkpoints.formats import nanotron
from hpctrain_plugins.checkpoints.formats.nanotron import write as nanotron_write
from hpctrain_plugins.checkpoints.logits import hf
from hpctrain_plugins.checkpoints.logits.weights import Weights
from hpctrain_plugins.checkpoints.options import ConvertOptions, Report
from hpctrain_plugins.checkpoints.tensors import Tensor
from tests.checkpoints.conftest import TorchRun, random_tensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make

MODELS: dict[str, dict[str, Any]] = {
    "neox": GPT_NEOX,
    "parallel": {**GPT_NEOX, "use_parallel_residual": True, "tie_word_embeddings": True},
    "llama": LLAMA,
    "ungrouped": {**LLAMA, "num_key_value_heads": 8, "tie_word_embeddings": True},
}
TP_2 = {"tp": 2}


def converted(source: Path, target: str, out: Path, **options: Any) -> Report:
    return convert(source, target, out, ConvertOptions(verify="logits", fsync=False, **options))


def agree(report: Report, source: str, target: str) -> None:
    said = report.logits
    assert report.verified == "logits"
    assert (said["source_flow"], said["target_flow"]) == (source, target)
    assert said["difference"] < 1e-9
    assert said["limit"] == 1e-6
    assert report.exactness in ("exact", "arithmetic")  # biases of parallel ranks are added up
    assert json.loads((report.out / "conversion.json").read_text())["logits"] == said


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_neox_ranks_and_a_whole_model_agree(tmp_path: Path, kind: str, tp: int) -> None:
    source = make(tmp_path / "hf", MODELS[kind], "F32", sigma=0.3)
    order = {"neox_gqa_layout": "concat"} if kind == "llama" else {}
    agree(converted(source, "neox", tmp_path / "neox", tp=tp, **order), "hf", "neox")
    agree(converted(tmp_path / "neox", "hf", tmp_path / "back", **order), "neox", "hf")


@pytest.mark.parametrize(
    ("kind", "naming"), [("neox", "legacy"), ("neox", "te"), ("ungrouped", "legacy"), ("ungrouped", "new")]
)
def test_every_naming_computes_the_same(tmp_path: Path, kind: str, naming: str) -> None:
    source = make(tmp_path / "hf", MODELS[kind], "F32", sigma=0.3)
    agree(converted(source, "neox", tmp_path / "neox", naming=naming, **TP_2), "hf", "neox")


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("kind", ["llama", "ungrouped"])
def test_nanotron_computes_the_same_with_both_rotations(tmp_path: Path, kind: str, pairs: bool) -> None:
    source = make(tmp_path / "hf", MODELS[kind], "F32", sigma=0.3)
    there = converted(source, "nanotron", tmp_path / "nanotron", rope_interleaved=pairs, **TP_2)
    agree(there, "hf", "nanotron")
    agree(converted(tmp_path / "nanotron", "hf", tmp_path / "back"), "nanotron", "hf")


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_source_is_rounded_as_its_weights_were(tmp_path: Path, dtype: str) -> None:
    source = make(tmp_path / "hf", GPT_NEOX, "F32", sigma=0.3)
    report = converted(source, "neox", tmp_path / "neox", dtype=dtype, **TP_2)
    assert (report.exactness, report.logits["difference"] < 1e-9) == ("rounded", True)


def test_an_adapter_is_applied_beside_its_base(tmp_path: Path) -> None:
    base = make(tmp_path / "base", LLAMA, "BF16", sigma=0.3)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    module = "base_model.model.model.layers.1.self_attn.q_proj"
    shapes = {f"{module}.lora_A.weight": (4, 32), f"{module}.lora_B.weight": (32, 4)}
    write_safetensors(adapter / "adapter_model.safetensors", random_tensors(1, "F32", shapes, sigma=0.3))
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    report = converted(adapter, "hf", tmp_path / "out", base=base)
    assert (report.exactness, report.logits["limit"]) == ("arithmetic", 0.0625)
    assert 0 < report.logits["difference"] < 0.02


def test_what_reads_back_the_same_and_means_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the reader and its inverse in the writer: a round trip sees nothing."""

    def unturned(tensor: Tensor, heads: int) -> Tensor:
        return tensor

    monkeypatch.setattr(nanotron_write, "halves_to_pairs", unturned)
    monkeypatch.setattr(nanotron, "pairs_to_halves", unturned)
    source = make(tmp_path / "hf", LLAMA, "F32", sigma=0.3)
    options = ConvertOptions(verify="roundtrip", rope_interleaved=True, fsync=False)
    convert(source, "nanotron", tmp_path / "passes", options)
    with pytest.raises(IntegrityError, match=r"logits of nanotron differ from those of .*hf by ") as caught:
        converted(source, "nanotron", tmp_path / "out", rope_interleaved=True)
    assert (caught.value.problems[0].code, caught.value.exit_code) == ("checkpoint-logits", 7)
    assert {p.name for p in tmp_path.iterdir()} == {"hf", "passes"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "mamba"}, "llama, mistral, qwen2, not mamba"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "does not compute scaled rotary"),
        ({"hidden_act": "xielu"}, "does not know the activation xielu"),
    ],
)
def test_what_it_cannot_compute_is_said_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    source = make(tmp_path / "hf", {**LLAMA, **change})
    with pytest.raises(ConfigError, match=says):
        converted(source, "hf", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["hf"]


def test_memory_is_that_of_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide the model: weights are read in blocks, and the answer is the same."""
    source = make(tmp_path / "hf", LLAMA, "F32", sigma=0.3)
    whole = hf.flow(hf_format.read(source, ConvertOptions()), [3, 1, 4], Weights("keep"))
    monkeypatch.setattr("hpctrain_plugins.checkpoints.logits.weights.CHUNK", 256)
    model = hf_format.read(source, ConvertOptions())
    assert np.allclose(hf.flow(model, [3, 1, 4], Weights("keep")), whole, rtol=1e-12, atol=1e-13)


@pytest.mark.torch
def test_the_flow_is_that_of_transformers(torch_run: TorchRun, tmp_path: Path) -> None:
    tokens = [5, 3, 150, 0, 5, 77]
    models = {
        **MODELS,
        "gelu_new": {**GPT_NEOX, "hidden_act": "gelu_new", "rotary_pct": 0.25},
    }
    folders = {name: make(tmp_path / name, config, "F32", sigma=0.3) for name, config in models.items()}
    want = json.loads(
        torch_run("logits_of.py", json.dumps({n: [str(f), tokens] for n, f in folders.items()}))
    )
    for name, folder in folders.items():
        have = hf.flow(hf_format.read(folder, ConvertOptions()), tokens, Weights("keep"))
        assert np.abs(have - np.array(want[name])).max() < 1e-6 * np.abs(have).max(), name
