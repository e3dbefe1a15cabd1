"""Adapters that peft saved, against peft's own merge; and what must not be merged."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun, random_tensors, read_safetensors, write_safetensors
from tests.checkpoints.models import LLAMA, make

CASES: dict[str, dict[str, Any]] = {
    "plain": {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    "rslora": {"r": 8, "lora_alpha": 16, "target_modules": "all-linear", "use_rslora": True},
    "patterns": {
        "r": 4,
        "lora_alpha": 8,
        "target_modules": ["q_proj", "down_proj"],
        "rank_pattern": {"down_proj": 2, "layers.1.self_attn.q_proj": 6},
        "alpha_pattern": {"layers.[01].mlp.down_proj": 5},
    },
    "saved": {"r": 4, "target_modules": ["k_proj"], "modules_to_save": ["lm_head", "norm"]},
    "embedding": {"r": 4, "target_modules": ["embed_tokens", "o_proj"]},
    "half": {"r": 4, "target_modules": "all-linear", "dtype": "float16"},
    "wide": {"r": 4, "target_modules": "all-linear", "dtype": "float32"},
    "turned": {
        "r": 4,
        "target_modules": ["c_attn", "c_proj"],
        "fan_in_fan_out": True,
        "gpt2": True,
        "dtype": "float32",
    },
}


@pytest.mark.torch
def test_merges_equal_pefts_own(torch_run: TorchRun, tmp_path: Path) -> None:
    torch_run("peft_make.py", json.dumps({n: [str(tmp_path / n), s] for n, s in CASES.items()}))
    for name, spec in CASES.items():
        convert(tmp_path / name / "adapter", "hf", tmp_path / name / "out", ConvertOptions())
        have = read_safetensors(tmp_path / name / "out")
        want = read_safetensors(tmp_path / name / "want")
        assert set(have) == set(want), name
        for key, (dtype, array) in want.items():
            assert have[key][0] == dtype
            if spec.get("dtype") == "float32":  # summed in another order: the last bit may differ
                np.testing.assert_allclose(have[key][1], array, rtol=0, atol=1e-6, err_msg=key)
            elif name == "embedding":  # its factors are bf16, and peft rounds their product once more
                wide = [(x.astype(np.uint32) << 16).view(np.float32) for x in (have[key][1], array)]
                np.testing.assert_allclose(wide[0], wide[1], rtol=2**-8, atol=2**-8 * np.abs(wide[1]).max())
            else:
                assert have[key][1].tobytes() == array.tobytes(), f"{name} {key}"


def adapter(tmp_path: Path, **changes: Any) -> Path:
    """An adapter made by hand on a small Llama."""
    make(tmp_path / "base", LLAMA)
    folder = tmp_path / "adapter"
    folder.mkdir()
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    shapes = {f"{module}.lora_A.weight": (4, 32), f"{module}.lora_B.weight": (32, 4)}
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", shapes))
    config = {
        "peft_type": "LORA",
        "r": 4,
        "lora_alpha": 8,
        "base_model_name_or_path": str(tmp_path / "base"),
    }
    (folder / "adapter_config.json").write_text(json.dumps({**config, **changes}))
    return folder


def test_only_the_adapted_weight_changes(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    report = convert(folder, "hf", tmp_path / "out", ConvertOptions(dtype="fp32", verify="roundtrip"))
    assert (report.exactness, report.verified) == ("arithmetic", "roundtrip")
    before, after = read_safetensors(tmp_path / "base"), read_safetensors(tmp_path / "out")
    factors = [a for _, a in read_safetensors(folder).values()]
    for key, (_, bits) in before.items():
        base = (bits.astype(np.uint32) << 16).view(np.float32)
        want = (
            base + 2 * factors[1] @ factors[0] if key.endswith("layers.0.self_attn.q_proj.weight") else base
        )
        np.testing.assert_allclose(after[key][1], want, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_dora": True}, "use_dora is set"),
        ({"lora_bias": True}, "lora_bias is set"),
        ({"peft_type": "IA3"}, "adapters of type IA3"),
        ({"target_parameters": ["mlp.experts"]}, "target_parameters is set"),
        (
            {"init_lora_weights": "pissa_niter_4"},
            "init_lora_weights pissa_niter_4 changed the base too",
        ),
        ({"r": 8}, "at rank 8"),
        ({"base_model_name_or_path": "org/model"}, "base model 'org/model' is not a folder"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = adapter(tmp_path, **changes)
    with pytest.raises(HpctrainError, match=message):
        convert(folder, "hf", tmp_path / "out", ConvertOptions())
    assert not (tmp_path / "out").exists()


def test_a_quantised_base_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    config = tmp_path / "base/config.json"
    config.write_text(json.dumps({**LLAMA, "quantization_config": {"load_in_4bit": True}}))
    with pytest.raises(HpctrainError, match="the base is quantised"):
        convert(folder, "hf", tmp_path / "out", ConvertOptions())


def test_an_adapter_for_a_module_that_the_base_lacks_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    name = "base_model.model.model.layers.9.self_attn.q_proj"
    shapes = {f"{name}.lora_A.weight": (4, 32), f"{name}.lora_B.weight": (32, 4)}
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", shapes))
    with pytest.raises(HpctrainError, match=r"layers.9.self_attn.q_proj, which the base does not have"):
        convert(folder, "hf", tmp_path / "out", ConvertOptions())


def test_half_an_adapter_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", {name: (4, 32)}))
    with pytest.raises(HpctrainError, match="has only one of its two factors"):
        convert(folder, "hf", tmp_path / "out", ConvertOptions())


def test_an_adapter_straight_to_neox_is_refused_with_the_way(tmp_path: Path) -> None:
    folder = adapter(tmp_path)
    with pytest.raises(HpctrainError, match="convert to hf first"):
        convert(folder, "neox", tmp_path / "out", ConvertOptions(tp=2))


def _mixture(folder: Path, modules: int) -> Path:
    """An adapter on so many small modules, as the experts of a mixture are."""
    base: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (4, 4)}
    factors: dict[str, tuple[int, ...]] = {}
    for number in range(modules):
        name = f"model.layers.{number // 384}.mlp.experts.{number % 384}.up_proj"
        base[f"{name}.weight"] = (4, 4)
        factors |= {f"base_model.model.{name}.lora_{x}.weight": s for x, s in (("A", (1, 4)), ("B", (4, 1)))}
    (folder / "base").mkdir(parents=True)
    write_safetensors(folder / "base/model.safetensors", random_tensors(0, "BF16", base))
    (folder / "base/config.json").write_text('{"model_type": "novel"}')
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", factors))
    settings = {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "base_model_name_or_path": "base"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


def test_the_time_of_a_merge_grows_with_its_modules_and_not_with_their_square(tmp_path: Path) -> None:
    seconds = {}
    for modules in (250, 2000):
        folder = _mixture(tmp_path / str(modules), modules)
        began = time.process_time()
        convert(folder, "hf", tmp_path / f"out-{modules}", ConvertOptions(dry_run=True))
        seconds[modules] = time.process_time() - began
    assert seconds[2000] < 3 * (2000 / 250) * seconds[250], seconds
