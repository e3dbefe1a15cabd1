"""Checkpoints that DeepSpeed itself wrote, against what DeepSpeed's own script reads from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats import zero_files
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Harm, TorchRun, read_safetensors

CASES: dict[str, dict[str, Any]] = {
    "odd 1": {"stage": 1, "kind": "odd", "world": 2},
    "odd 2": {"stage": 2, "kind": "odd", "world": 3},
    "odd 3": {"stage": 3, "kind": "odd", "world": 3},
    "plain 2 aligned": {
        "stage": 2,
        "kind": "plain",
        "world": 2,
        "zero": {"parameter_alignment": True},
    },
    "lora 1": {"stage": 1, "kind": "lora", "world": 2},
    "lora 3": {"stage": 3, "kind": "lora", "world": 2},
    "lora-only 2": {"stage": 2, "kind": "lora-only", "world": 2},
}

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def made(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zero")
    jobs = {name: [str(folder / name), spec] for name, spec in CASES.items()}
    torch_run("zero_make.py", json.dumps(jobs))
    return folder


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("lora")])
def test_every_number_equals_deepspeeds_own_script(made: Path, tmp_path: Path, name: str) -> None:
    report = convert(
        made / name / "ckpt",
        "hf",
        tmp_path / "out",
        ConvertOptions(verify="roundtrip", dtype="fp32"),
    )
    (tmp_path / "want").mkdir()
    shutil.copy(made / name / "want.safetensors", tmp_path / "want")
    have, want = read_safetensors(tmp_path / "out"), read_safetensors(tmp_path / "want")
    if CASES[name]["stage"] == 1 and CASES[name]["kind"] == "odd":
        lost = {k for k in have if k.startswith("frozen.")}
        assert lost == {"frozen.weight", "frozen.bias"}
        assert report.decisions["frozen_from_module"] is True
        have = {k: v for k, v in have.items() if k in want}
    assert set(have) == set(want)
    for key, (dtype, array) in want.items():
        half = dtype == "BF16"  # the script leaves some floats as they were trained
        wide = (array.astype(np.uint32) << 16).view(np.float32) if half else array
        assert have[key][0] == ("F32" if half else dtype)
        assert have[key][1].tobytes() == wide.tobytes(), key
    assert report.decisions["zero_stage"] == CASES[name]["stage"]
    assert report.bytes_checked > 0


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("lora")])
def test_merged_adapters_equal_pefts_merge_of_the_masters(made: Path, tmp_path: Path, name: str) -> None:
    report = convert(made / name / "ckpt", "hf", tmp_path / "out", ConvertOptions())
    (tmp_path / "want").mkdir()
    shutil.copy(made / name / "want.safetensors", tmp_path / "want")
    have, want = read_safetensors(tmp_path / "out"), read_safetensors(tmp_path / "want")
    assert set(want) - set(have) <= {"lm_head.weight"}
    for key, (dtype, array) in have.items():
        assert (dtype, array.tobytes()) == (want[key][0], want[key][1].tobytes()), key
    assert report.exactness == "arithmetic"
    assert report.decisions["merged_adapters"] == 4


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "odd 3/ckpt", tmp_path / "ckpt")
    return tmp_path / "ckpt"


def _lost_rank(ckpt: Path) -> str:
    next(ckpt.glob("global_step2/*_pp_rank_1_*_optim_states.pt")).unlink()
    return "zero_pp_rank_1_mp_rank_00_optim_states.pt is missing, 3 ranks wrote this"


def _stale_rank(ckpt: Path) -> str:
    first = next(ckpt.glob("global_step2/*_pp_rank_0_*_optim_states.pt"))
    shutil.copy(first, first.parent / first.name.replace("pp_rank_0", "pp_rank_3"))
    return "zero_pp_rank_3_mp_rank_00_optim_states.pt is left from a larger run"


def _lost_model(ckpt: Path) -> str:
    (ckpt / "global_step2/zero_pp_rank_2_mp_rank_00_model_states.pt").unlink()
    return "zero_pp_rank_2_mp_rank_00_model_states.pt is missing"


def _flip(ckpt: Path) -> str:
    path = next(ckpt.glob("global_step2/*_pp_rank_1_*_optim_states.pt"))
    archive = torchzip.open_archive(path)
    ref = archive.value["optimizer_state_dict"]["fp32_flat_groups"][0]
    raw = bytearray(path.read_bytes())
    raw[archive.entries[ref.storage.key].offset + 5] ^= 1
    path.write_bytes(raw)
    return f"{path.name} does not match its own checksum"


@pytest.mark.parametrize("harm", [_lost_rank, _stale_rank, _lost_model, _flip])
def test_damage_is_named_and_leaves_nothing(copied: Path, tmp_path: Path, harm: Harm) -> None:
    message = harm(copied)
    with pytest.raises(HpctrainError, match=message) as caught:
        convert(copied, "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code == 7
    assert [p.name for p in tmp_path.iterdir()] == ["ckpt"]


def test_an_adapter_without_its_base_asks_for_it(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "lora-only 2/ckpt", tmp_path / "ckpt")
    file = tmp_path / "ckpt/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "base_model_name_or_path": "gone"}))
    with pytest.raises(ConfigError, match="base model 'gone' is not a folder") as caught:
        convert(tmp_path / "ckpt", "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.problems[0].hint == "--base DIR"
    options = ConvertOptions(base=made / "lora-only 2/base")
    assert convert(tmp_path / "ckpt", "hf", tmp_path / "out", options).exactness == "arithmetic"


def test_a_partition_knows_its_stage(made: Path) -> None:
    assert [p.stage for p in zero_files.read(made / "odd 3/ckpt/global_step2")] == [3]


def test_weights_that_were_trained_without_zero(torch_run: TorchRun, tmp_path: Path) -> None:
    spec = {"stage": 0, "dtype": "float32", "world": 2, "steps": 2}
    torch_run("zero_resume.py", json.dumps([[str(tmp_path / "made"), spec]]))
    report = convert(tmp_path / "made/ckpt", "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
    assert report.decisions["zero_stage"] == 0
    have, want = read_safetensors(tmp_path / "out"), read_safetensors(tmp_path / "made")
    assert {n: a.tobytes() for n, (_, a) in have.items()} == {n: a.tobytes() for n, (_, a) in want.items()}
    with pytest.raises(ConfigError, match="goes on on any number of ranks"):
        convert(tmp_path / "made/ckpt", "deepspeed-zero", tmp_path / "ranks", ConvertOptions(ranks=4))


def test_zero_without_its_optimizer_is_not_taken_for_a_training_without_zero(
    made: Path, tmp_path: Path
) -> None:
    (tmp_path / "step").mkdir()
    shutil.copy(next(made.glob("odd 1/ckpt/*/mp_rank_00_model_states.pt")), tmp_path / "step")
    with pytest.raises(HpctrainError, match="the files of its optimizer are missing") as caught:
        convert(tmp_path / "step", "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code == 7
