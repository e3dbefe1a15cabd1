"""Full-precision weights out of pipelines that the real DeepSpeed trained, tp and pp together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints import registry
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun, bf16, read_safetensors

CASES: dict[str, dict[str, Any]] = {
    "stages": {"pp": 2, "tp": 1, "dp": 2, "stage": 1},
    "ranks": {"pp": 1, "tp": 2, "dp": 2, "stage": 1},
    "both": {"pp": 2, "tp": 2, "dp": 1, "stage": 1},
}
HF = {
    "attention.query_key_value": ("attention.query_key_value", 0),
    "attention.dense": ("attention.dense", 1),
    "mlp.linear1": ("mlp.dense_h_to_4h", 0),
    "mlp.linear2": ("mlp.dense_4h_to_h", 1),
    "input_layernorm": ("input_layernorm", None),
    "post_attention_layernorm": ("post_attention_layernorm", None),
}

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def made(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipe")
    jobs = {name: [str(folder / name), spec] for name, spec in CASES.items()}
    torch_run("pipe_make.py", json.dumps(jobs))
    return folder


def masters(folder: Path, spec: dict[str, Any]) -> dict[str, np.ndarray]:
    """What every rank said of its own weights, put together under the names of Hugging Face."""
    stages: list[dict[str, list[np.ndarray]]] = []
    for stage in range(spec["pp"]):
        ranks: dict[str, list[np.ndarray]] = {}
        for rank in range(spec["tp"]):
            one = folder.parent / "one"
            shutil.rmtree(one, ignore_errors=True)
            one.mkdir()
            shutil.copy(folder / f"masters-{stage}-{rank}.safetensors", one)
            for name, (_, array) in read_safetensors(one).items():
                ranks.setdefault(name, []).append(array)
        stages.append(ranks)
    out: dict[str, np.ndarray] = {}
    for name, parts in ((n, p) for ranks in stages for n, p in ranks.items()):
        if name.startswith("tied_modules"):
            out["gpt_neox.embed_in.weight"] = np.concatenate(parts)
            continue
        layer, _, rest = name.partition(".")
        module, _, kind = rest.rpartition(".")
        if module == "norm":
            out[f"gpt_neox.final_layer_norm.{kind}"] = parts[0]
            continue
        new, axis = HF[module]
        alone = axis is None or (axis == 1 and kind == "bias")
        key = f"gpt_neox.layers.{int(layer) - 2}.{new}.{kind}"
        out[key] = parts[0] if alone else np.concatenate(parts, axis)
    return out


@pytest.mark.parametrize("name", CASES)
def test_masters_are_the_optimizers_own_numbers(made: Path, tmp_path: Path, name: str) -> None:
    assert registry.detect(made / name) == "neox"
    options = ConvertOptions(masters=True, verify="roundtrip")
    report = convert(made / name, "hf", tmp_path / "full", options)
    want, have = masters(made / name, CASES[name]), read_safetensors(tmp_path / "full")
    assert set(have) == set(want)
    for key, array in want.items():
        assert have[key][0] == "F32"
        assert have[key][1].tobytes() == array.tobytes(), key
    convert(made / name, "hf", tmp_path / "half", ConvertOptions(verify="roundtrip"))
    half = read_safetensors(tmp_path / "half")
    assert {d for d, _ in half.values()} == {"BF16"}
    differ = sum((half[k][1] != bf16(a)).sum() for k, (_, a) in have.items())
    assert differ > 100  # rounding is not cutting: the masters say more than the weights
    assert report.decisions["masters"] == "the optimizer's fp32 weights"


def test_a_lost_stage_is_named(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "both", tmp_path / "both")
    for path in tmp_path.glob("both/global_step1/*mp_rank_03_optim_states.pt"):
        path.unlink()
    with pytest.raises(IntegrityError, match=r"model-parallel ranks|the optimizer holds no"):
        convert(tmp_path / "both", "hf", tmp_path / "out", ConvertOptions(masters=True))
