"""Universal checkpoints of DeepSpeed: ours against its own script's, and trainings that go on from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Harm, TorchRun, read_safetensors
from tests.checkpoints.torch_values import plain

pytestmark = [pytest.mark.torch, pytest.mark.slow]

STEPS = 4
SUB_GROUPS = {"sub_group_size": 300, "stage3_param_persistence_threshold": 0}
TRAININGS: dict[str, dict[str, Any]] = {
    "stage 2": {"stage": 2, "dtype": "float32"},
    "stage 3": {"stage": 3, "dtype": "float32", "zero": SUB_GROUPS},
    "frozen 1": {"stage": 1, "dtype": "bfloat16", "frozen": True},
    "frozen 3": {"stage": 3, "dtype": "bfloat16", "frozen": True, "zero": SUB_GROUPS},
}
FORM = "deepspeed-universal"
THEIRS = "ckpt/global_step2_universal"


@pytest.fixture(scope="module")
def trained(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("universal")
    jobs = [
        [str(folder / name), {**spec, "world": 2, "steps": STEPS, "universal": True}]
        for name, spec in TRAININGS.items()
    ]
    torch_run("zero_resume.py", json.dumps(jobs))
    return folder


def written(folder: Path) -> dict[str, Any]:
    """Every file of torch, with all it says but what only one of the two writers keeps."""
    out = {}
    for file in sorted(folder.rglob("*.pt")):
        archive = torchzip.open_archive(file)
        values = plain(archive, archive.value)
        if file.name == "optimizer_state.pt":
            values.pop("fp32_flat_groups", None)  # a half of the weights, which nothing reads
            for state in values.get("optimizer_state_dict", {}).get("state", {}).values():
                state.pop("exp_avg", None)
                state.pop("exp_avg_sq", None)
        out[str(file.relative_to(folder))] = values
    return out


@pytest.mark.parametrize("name", TRAININGS)
def test_it_is_what_deepspeeds_own_script_makes(trained: Path, tmp_path: Path, name: str) -> None:
    source = trained / name / "ckpt/global_step2"
    report = convert(source, FORM, tmp_path / "out", ConvertOptions(verify="roundtrip"))
    assert (report.exactness, report.shapes) == ("exact", "checkpoint")
    ours, theirs = written(tmp_path / "out/global_step2_universal"), written(trained / name / THEIRS)
    assert ours.keys() == theirs.keys()
    for file, values in theirs.items():
        assert ours[file] == values, file
    assert (tmp_path / "out/latest_universal").read_text() == "global_step2_universal"
    settings = any("settings of the first" in warning for warning in report.warnings)
    frozen = any("no frozen weights" in warning for warning in report.warnings)
    assert (settings, frozen) == ("3" in name, "frozen" in name)


def test_a_training_goes_on_from_it_as_from_deepspeeds_own(
    trained: Path, torch_run: TorchRun, tmp_path: Path
) -> None:
    jobs, cases = [], {"stage 2": 3, "stage 3": 1}
    for name, ranks in cases.items():
        convert(trained / name / "ckpt/global_step2", FORM, tmp_path / name, ConvertOptions())
        for whose, load in {"our": tmp_path / name, "their": trained / name / "ckpt"}.items():
            spec = {**TRAININGS[name], "world": ranks, "steps": STEPS, "universal": True, "load": str(load)}
            jobs.append([str(tmp_path / f"{whose} {name}"), spec])
    torch_run("zero_resume.py", json.dumps(jobs))
    for name in cases:
        ours, theirs = (
            json.loads((tmp_path / f"{whose} {name}/losses.json").read_text()) for whose in ("our", "their")
        )
        assert ours == theirs
        undisturbed = json.loads((trained / name / "losses.json").read_text())[STEPS // 2]
        assert ours[0] == pytest.approx(undisturbed, rel=1e-6)


@pytest.mark.parametrize("name", TRAININGS)
def test_it_is_read_as_the_ranks_are(trained: Path, tmp_path: Path, name: str) -> None:
    """As a model, and for ranks."""
    ranks, theirs = trained / name / "ckpt/global_step2", trained / name / THEIRS
    for number, source in enumerate((ranks, theirs)):
        convert(source, "hf", tmp_path / f"model {number}", ConvertOptions(verify="roundtrip"))
        options = ConvertOptions(ranks=3, verify="roundtrip")
        convert(source, "deepspeed-zero", tmp_path / f"ranks {number}", options)
    models = [read_safetensors(tmp_path / f"model {number}") for number in (0, 1)]
    assert {k: (d, a.tobytes()) for k, (d, a) in models[0].items()} == {
        k: (d, a.tobytes()) for k, (d, a) in models[1].items()
    }
    first, second = (written(tmp_path / f"ranks {number}") for number in (0, 1))
    assert first == second


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained / "stage 3" / THEIRS, tmp_path / "step")
    return tmp_path / "step"


def _lost(step: Path) -> str:
    (step / "zero/first.weight/exp_avg.pt").unlink()
    return "zero/first.weight/exp_avg.pt is missing"


def _lost_optimizer(step: Path) -> str:
    (step / "zero/optimizer_state.pt").unlink()
    return "zero/optimizer_state.pt is missing"


def _of_another(step: Path) -> str:
    shutil.copy(step / "zero/first.bias/exp_avg.pt", step / "zero/first.weight/exp_avg.pt")
    return r"first.weight.exp_avg has shape \[29\] in .*/exp_avg.pt, not \[29, 13\]"


def _changed(step: Path) -> str:
    path = step / "zero/embed.weight/exp_avg_sq.pt"
    archive = torchzip.open_archive(path)
    raw = bytearray(path.read_bytes())
    raw[archive.entries[archive.value.storage.key].offset + 5] ^= 1
    path.write_bytes(raw)
    return "exp_avg_sq.pt does not match its own checksum"


def _tensor_parallel(step: Path) -> str:
    first = step / "zero_pp_rank_0_mp_rank_00_model_states.pt"
    shutil.copy(first, step / first.name.replace("mp_rank_00", "mp_rank_01"))
    return "was written with tensor-parallel ranks, which is not rewritten"


@pytest.mark.parametrize("harm", [_lost, _lost_optimizer, _of_another, _changed, _tensor_parallel])
def test_damage_is_named_and_leaves_nothing(copied: Path, tmp_path: Path, harm: Harm) -> None:
    message = harm(copied)
    with pytest.raises(HpctrainError, match=message):
        convert(copied, "deepspeed-zero", tmp_path / "out", ConvertOptions(ranks=3))
    assert [path.name for path in tmp_path.iterdir()] == ["step"]


def test_what_fits_any_ranks_takes_none(trained: Path, tmp_path: Path) -> None:
    source = trained / "stage 2/ckpt/global_step2"
    with pytest.raises(ConfigError, match="is cut for the ranks that load it, when they load it"):
        convert(source, FORM, tmp_path / "out", ConvertOptions(ranks=3))
