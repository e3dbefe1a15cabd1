"""A training of Megatron-Core with its optimizer, from the layout of before 0.15 to one that 0.16 loads."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.containers import distcp, pickle_edit, torchzip, torchzip_write
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats.megatron.common import read_common
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import HERE, Call, Harm, TorchRun, read_safetensors
from tests.checkpoints.models import LLAMA, make

_STEP = "iter_0000002"
_SHAPE = {
    "num_layers": 2,
    "hidden_size": 16,
    "ffn_hidden_size": 20,
    "num_attention_heads": 4,
    "num_query_groups": 2,
}
_EXPERTS = {**_SHAPE, "fp32": True, "num_experts": 4, "moe_ffn_hidden_size": 20}
TRAININGS = ("dense", "experts", "rounded")
"""Of megatron-core 0.15.3, in fp32 on tp 2 and dp 2; with experts on ep 2; in bf16 on dp 3, where two ranks
share a tensor."""
_OPTIMIZER = ConvertOptions(verify="roundtrip", optimizer=True, fsync=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    with zipfile.ZipFile(HERE / "fixtures/megatron-trained.zip") as archive:
        archive.extractall(folder)
    return folder


def _losses(trained: Path, name: str) -> list[float]:
    losses: list[float] = json.loads((trained / name / "losses.json").read_text())
    return losses


@pytest.mark.torch
def test_the_newer_megatron_core_goes_on_from_it(trained: Path, torch_run: TorchRun, tmp_path: Path) -> None:
    """Steps 3 and 4 by 0.16.1 from what we wrote, beside those that 0.15.3 did without a break."""
    for name in TRAININGS:
        report = convert(trained / name / _STEP, "megatron", tmp_path / name, _OPTIMIZER)
        assert (report.exactness, report.shapes, report.verified) == ("exact", "checkpoint", "roundtrip")
        assert (tmp_path / name / "latest_checkpointed_iteration.txt").read_text() == "2"
    sizes: dict[str, tuple[str, dict[str, Any]]] = {
        "as it was": ("dense", {**_SHAPE, "fp32": True, "tp": 2, "dp": 2}),
        "one rank": ("dense", {**_SHAPE, "fp32": True, "dp": 1}),
        "more ranks": ("dense", {**_SHAPE, "fp32": True, "dp": 4}),
        "in bf16": ("rounded", {**_SHAPE, "dp": 3}),
        "experts as they were": ("experts", {**_EXPERTS, "ep": 2, "dp": 2}),
        "experts on more ranks": ("experts", {**_EXPERTS, "ep": 4, "dp": 4}),
    }
    asked = {
        case: {**settings, "steps": 2, "load": str(tmp_path / name / _STEP)}
        for case, (name, settings) in sizes.items()
    }
    losses = json.loads(torch_run("megatron_train.py", tmp_path / "runs", json.dumps(asked)).splitlines()[-1])
    want = {case: _losses(trained, name)[2:] for case, (name, _) in sizes.items()}
    apart = {case: float(np.abs(np.subtract(losses[case], want[case])).max()) for case in want}
    assert {case: value for case, value in apart.items() if value > 1e-6} == {}


@pytest.mark.torch
def test_the_newer_megatron_core_refuses_it_as_it_is(
    trained: Path, torch_run: TorchRun, tmp_path: Path
) -> None:
    """Why this conversion exists: the same load of the same training, before."""
    asked = {
        "dense": {**_SHAPE, "fp32": True, "tp": 2, "dp": 2, "load": str(trained / "dense" / _STEP)},
    }
    with pytest.raises(AssertionError, match="flattened_range is not supported"):
        torch_run("megatron_train.py", tmp_path / "runs", json.dumps(asked))


@pytest.mark.parametrize("name", TRAININGS)
def test_every_state_has_the_shape_of_its_weight(trained: Path, tmp_path: Path, name: str) -> None:
    source = distcp.read(trained / name / _STEP)
    convert(trained / name, "megatron", tmp_path / "out", _OPTIMIZER)
    written = distcp.read(tmp_path / "out" / _STEP)
    assert written.true_shapes == {}
    assert set(written.shapes) == {key.replace(".fp32_param.", ".param.") for key in source.shapes}
    for key, shape in written.shapes.items():
        assert shape == written.shapes[key.partition(".state.")[2].partition(".")[2] or key]
    assert set(written.items) - set(written.shapes) == set(source.items) - set(source.shapes)
    common = read_common(tmp_path / "out" / _STEP)
    assert common["content_metadata"]["distrib_optim_sharding_type"] == "fully_reshardable"
    assert b"fully_sharded" not in (tmp_path / "out" / _STEP / "common.pt").read_bytes()


def test_the_fp32_weights_are_read_from_flat_pieces(trained: Path, tmp_path: Path) -> None:
    """Against the weights of the model, which in fp32 are the same numbers."""
    convert(trained / "dense", "hf", tmp_path / "weights", ConvertOptions())
    convert(trained / "dense", "hf", tmp_path / "masters", ConvertOptions(masters=True))
    weights, masters = read_safetensors(tmp_path / "weights"), read_safetensors(tmp_path / "masters")
    assert {n: a.tobytes() for n, (_, a) in weights.items()} == {
        n: a.tobytes() for n, (_, a) in masters.items()
    }
    convert(trained / "rounded", "hf", tmp_path / "bf16", ConvertOptions())
    convert(trained / "rounded", "hf", tmp_path / "fp32", ConvertOptions(masters=True, dtype="bf16"))
    rounded, nearest = read_safetensors(tmp_path / "bf16"), read_safetensors(tmp_path / "fp32")
    assert {n: a.tobytes() for n, (_, a) in rounded.items()} == {
        n: a.tobytes() for n, (_, a) in nearest.items()
    }


def test_what_is_in_the_newer_layout_already_is_written_the_same(trained: Path, tmp_path: Path) -> None:
    convert(trained / "dense", "megatron", tmp_path / "once", _OPTIMIZER)
    report = convert(tmp_path / "once", "megatron", tmp_path / "twice", _OPTIMIZER)
    assert any("already: Megatron-Core loads it at any size" in warning for warning in report.warnings)
    once, twice = (distcp.read(tmp_path / name / _STEP) for name in ("once", "twice"))
    assert (once.shapes, set(once.items)) == (twice.shapes, set(twice.items))


def test_a_checkpoint_of_before_0_13_says_its_layout_in_another_place(trained: Path, tmp_path: Path) -> None:
    """Made from the newer one by taking out what came with 0.13: a stand-in, of those none was at hand."""
    shutil.copytree(trained / "dense", tmp_path / "older")
    file = tmp_path / "older" / _STEP / "common.pt"
    raw = file.read_bytes()
    assert raw.count(b"content_metadata") == 1
    archive = torchzip.open_archive(file, inert=("megatron.",))
    value = {key: archive.value[key] for key in ("args", "checkpoint_version", "iteration")}
    value["optimizer"] = {"param_state_sharding_type": "fully_sharded_model_space"}
    _write(torchzip_write.plan_file("common.pt", value), file)
    convert(tmp_path / "older", "megatron", tmp_path / "out", ConvertOptions(optimizer=True))
    common = read_common(tmp_path / "out" / _STEP)
    assert common["optimizer"] == {"param_state_sharding_type": "fully_reshardable"}
    noted = {"distrib_optim_sharding_type": "fully_reshardable", "chained_optim_avoid_prefix": True}
    assert common["content_metadata"] == noted


def _write(planned: Any, file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(planned.size)
        for at, text in (*planned.texts, *planned.seal([])):
            out.seek(at)
            out.write(text)


def _renamed(old: bytes, new: bytes, message: str) -> Harm:
    def harm(step: Path) -> str:
        raw = (step / ".metadata").read_bytes()
        assert raw.count(old)
        (step / ".metadata").write_bytes(raw.replace(old, new))
        return message

    harm.__name__ = new.decode()
    return harm


def _flipped(step: Path) -> str:
    item = distcp.read(step).items["optimizer.state.exp_avg_sq.decoder.final_layernorm.weight"][0]
    archive = torchzip.open_archive(item.path, offset=item.start, length=item.length)
    raw = bytearray(item.path.read_bytes())
    raw[archive.crcs[0].offset + 5] ^= 4
    item.path.write_bytes(raw)
    return item.path.name


def _lost_rank(step: Path) -> str:
    (step / "__3_0.distcp").unlink()
    return "__3_0.distcp is missing"


def _without_common(step: Path) -> str:
    (step / "common.pt").unlink()
    return "common.pt is missing"


_HARMS = (
    _lost_rank,
    _without_common,
    _flipped,
    _renamed(b"state.exp_avg.output_layer", b"state.exp_avh.output_layer", "no exp_avh of|no exp_avg of"),
    _renamed(b"exp_avg.output_layer", b"exp_avg.output_later", "is the state of output_later.weight"),
    _renamed(b"optimizer.state.exp", b"optimizer.place.exp", "is no state of a weight"),
)


@pytest.mark.parametrize("harm", _HARMS, ids=lambda harm: harm.__name__)
def test_damage_is_named_and_leaves_nothing(trained: Path, tmp_path: Path, harm: Harm) -> None:
    shutil.copytree(trained / "dense", tmp_path / "m")
    message = harm(tmp_path / "m" / _STEP)
    with pytest.raises(HpctrainError, match=message):
        convert(tmp_path / "m", "megatron", tmp_path / "out", _OPTIMIZER)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_has_no_optimizer_to_rewrite_is_refused(convert: Call, trained: Path, tmp_path: Path) -> None:
    make(tmp_path / "hf", LLAMA)
    assert convert("hf", "--to", "megatron", "-o", "m")[0] == 0
    step = trained / "dense"
    for words, message in (
        (("m", "--to", "megatron"), "it was saved without an optimizer"),
        (("hf", "--to", "megatron"), "the optimizer of hf is not rewritten"),
        ((step,), "hf takes no optimizer of Megatron-Core"),
        ((step, "--to", "megatron", "--tp", 2), "keeps everything as it was, and --tp would change it"),
        ((step, "--to", "megatron", "--dtype", "bf16"), "and --dtype would change it"),
        ((step, "--to", "megatron", "--masters"), "and --masters would change it"),
    ):
        code, _, err = convert(*words, "--optimizer", "-o", "out")
        assert (code, message in err) == (2, True), err
        assert not (tmp_path / "out").exists()


def test_a_text_of_a_pickle_changes_and_nothing_else() -> None:
    value = {"a": "old", "b": ["old", "older", 7], "c": {"old": None}}
    changed = pickle_edit.with_text(torchzip_write.to_pickle(value), "old", "new and longer", "here")
    want = {"a": "new and longer", "b": ["new and longer", "older", 7], "c": {"new and longer": None}}
    assert changed == torchzip_write.to_pickle(want)
    with pytest.raises(HpctrainError, match="here does not say lost"):
        pickle_edit.with_text(changed, "lost", "new", "here")
