"""`convert --ranks`: a training with DeepSpeed goes on, on other ranks, as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun
from tests.checkpoints.torch_values import plain

pytestmark = [pytest.mark.torch, pytest.mark.slow]

STEPS = 4
SUB_GROUPS = {"sub_group_size": 300, "stage3_param_persistence_threshold": 0}
"""So few that their number changes with the ranks, as it does with a billion in a large model."""

TRAININGS: dict[str, dict[str, Any]] = {
    "stage 1": {"stage": 1, "dtype": "float32"},
    "stage 2": {"stage": 2, "dtype": "float32"},
    "bf16": {"stage": 2, "dtype": "bfloat16"},
    "stage 3": {"stage": 3, "dtype": "float32", "zero": SUB_GROUPS},
    "stage 3 frozen": {"stage": 3, "dtype": "float32", "zero": SUB_GROUPS, "frozen": True},
    "stage 3 bf16": {"stage": 3, "dtype": "bfloat16", "zero": SUB_GROUPS},
}
REFUSED: dict[str, dict[str, Any]] = {
    "round_robin_gradients": {"stage": 2, "dtype": "float32", "zero": {"round_robin_gradients": True}},
}
RANKS = {
    "stage 1": (1, 4),
    "stage 2": (3, 2),
    "bf16": (4,),
    "stage 3": (1, 2, 3, 4),
    "stage 3 frozen": (1, 3),
    "stage 3 bf16": (4,),
}


def losses(folder: Path) -> list[float]:
    numbers: list[float] = json.loads((folder / "losses.json").read_text())
    return numbers


@pytest.fixture(scope="module")
def trained(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    specs = {**TRAININGS, **REFUSED}
    jobs = [[str(folder / name), {**spec, "world": 2, "steps": STEPS}] for name, spec in specs.items()]
    torch_run("zero_resume.py", json.dumps(jobs))
    return folder


def test_losses_go_on_on_other_numbers_of_ranks(trained: Path, torch_run: TorchRun, tmp_path: Path) -> None:
    """The first loss proves the weights, the second what the optimizer kept of them."""
    jobs = []
    for name, spec in TRAININGS.items():
        for ranks in RANKS[name]:
            out = tmp_path / f"{name} {ranks}"
            options = ConvertOptions(ranks=ranks, verify="roundtrip")
            report = convert(trained / name / "ckpt", "deepspeed-zero", out, options)
            assert (report.exactness, report.shapes) == ("exact", "checkpoint")
            assert report.bytes_checked > 0
            load = {**spec, "world": ranks, "steps": STEPS, "load": str(out)}
            jobs.append([str(tmp_path / f"again {name} {ranks}"), load])
    torch_run("zero_resume.py", json.dumps(jobs))
    for name in TRAININGS:
        for ranks in RANKS[name]:
            resumed = losses(tmp_path / f"again {name} {ranks}")
            first, *later = losses(trained / name)[STEPS // 2 :]
            assert resumed[0] == pytest.approx(first, rel=1e-6), (name, ranks)
            # bf16 gradients are added up in another order on other numbers of ranks
            assert resumed[1:] == pytest.approx(later, rel=1e-3 if "bf16" in name else 1e-6), (name, ranks)


def test_there_and_back_is_the_same_file(trained: Path, tmp_path: Path) -> None:
    source = trained / "stage 1/ckpt"
    convert(source, "deepspeed-zero", tmp_path / "five", ConvertOptions(ranks=5))
    convert(tmp_path / "five", "deepspeed-zero", tmp_path / "two", ConvertOptions(ranks=2))
    for file in sorted(source.glob("global_step2/*.pt")):
        first, second = (torchzip.open_archive(f) for f in (file, tmp_path / "two/global_step2" / file.name))
        assert plain(first, first.value) == plain(second, second.value)
    assert (tmp_path / "two/latest").read_text() == "global_step2"


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_rewritten_rightly_is_refused_by_name(
    trained: Path, tmp_path: Path, name: str
) -> None:
    options = ConvertOptions(ranks=4)
    with pytest.raises(ConfigError, match=f"was written with {name}, which is not rewritten"):
        convert(trained / name / "ckpt", "deepspeed-zero", tmp_path / "out", options)


def test_a_changed_byte_of_a_moment_is_named(trained: Path, tmp_path: Path) -> None:
    source = tmp_path / "ckpt/global_step2"
    source.mkdir(parents=True)
    for file in (trained / "stage 1/ckpt/global_step2").iterdir():
        (source / file.name).write_bytes(file.read_bytes())
    path = source / "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    archive = torchzip.open_archive(path)
    moment = archive.value["optimizer_state_dict"]["base_optimizer_state"]["state"][0]["exp_avg"]
    raw = bytearray(path.read_bytes())
    raw[archive.entries[moment.storage.key].offset + 5] ^= 1
    path.write_bytes(raw)
    with pytest.raises(IntegrityError, match="does not match its own checksum"):
        convert(tmp_path / "ckpt", "deepspeed-zero", tmp_path / "out", ConvertOptions(ranks=3))
    assert not (tmp_path / "out").exists()
