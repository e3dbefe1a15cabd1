"""A folder that no format reads is called what it is, with the way on; a lost index is made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpctrain_plugins.checkpoints import registry
from tests.checkpoints.conftest import Call, TorchRun, random_tensors, read_safetensors, write_safetensors
from tests.checkpoints.models import LLAMA, make, shapes

MEGATRON = '{"sharded_backend": "torch_dist", "sharded_backend_version": 1}'
FOREIGN = {
    "m.gguf": ("weights for llama.cpp (GGUF)", "full", ""),
    "consolidated.00.pth": ("a Llama as Meta publishes it", "convert_llama_weights_to_hf", ""),
    "tf_model.h5": ("weights of TensorFlow", "save_pretrained", ""),
    "flax_model.msgpack": ("weights of Flax", "save_pretrained", ""),
    "iter_0000010/metadata.json": ("without its directory", "earlier checkpoint", MEGATRON),
    "iter_0000011/metadata.json": (
        "in its format zarr",
        "torch_dist",
        MEGATRON.replace("torch_dist", "zarr"),
    ),
    "__0_0.distcp": ("the save was cut short", "an earlier checkpoint of the run", ""),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_known_of_a_folder_is_said(convert: Call, tmp_path: Path, name: str) -> None:
    kind, remedy, text = FOREIGN[name]
    file = tmp_path / "source" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    code, _, err = convert("source", "-o", "out")
    assert (code, "error[checkpoint-format]: source " in err, kind in err) == (2, True, True), err
    assert remedy in err.partition("help: ")[2] or remedy == "full", err


def test_megatron_core_is_not_taken_for_torchs_own(tmp_path: Path) -> None:
    for name, text in {".metadata": "", "__0_0.distcp": "", "metadata.json": MEGATRON}.items():
        (tmp_path / name).write_text(text)
    assert not registry.load("dcp").detect(tmp_path)
    (tmp_path / "metadata.json").unlink()
    assert registry.load("dcp").detect(tmp_path)


def test_a_folder_of_checkpoints_leads_to_the_newest(convert: Call, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for step in (9, 10, 100):
        make(tmp_path / f"runs/checkpoint-{step}", LLAMA)
    code, _, err = convert("runs", "-o", "out")
    assert (code, "runs holds 3 checkpoints and is none itself" in err) == (2, True), err
    assert "help: runs/checkpoint-100" in err


def _sharded(folder: Path) -> None:
    tensors = random_tensors(0, "BF16", shapes(LLAMA))
    (folder / "model.safetensors").unlink()
    names = list(tensors)
    for number in range(3):
        part = {n: tensors[n] for n in names[number::3]}
        write_safetensors(folder / f"model-{number + 1:05d}-of-00003.safetensors", part)


def test_shards_whose_index_is_lost_are_read(convert: Call, tmp_path: Path) -> None:
    _sharded(make(tmp_path / "model", LLAMA))
    code, _, err = convert("model", "-o", "out")
    assert code == 0, err
    assert "model/model.safetensors.index.json is lost; the names of the shards say that all are here" in err
    assert set(read_safetensors(tmp_path / "out")) == set(shapes(LLAMA))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_shard_that_its_neighbours_names_count_is_missed(
    convert: Call, tmp_path: Path, number: int
) -> None:
    _sharded(make(tmp_path / "model", LLAMA))
    (tmp_path / f"model/model-{number:05d}-of-00003.safetensors").unlink()
    code, _, err = convert("model", "-o", "out")
    assert (code, f"model-{number:05d}-of-00003.safetensors is missing" in err) == (7, True), err


@pytest.mark.torch
def test_transformers_own_shards_and_index(convert: Call, torch_run: TorchRun, tmp_path: Path) -> None:
    spec = {"model": ["LlamaForCausalLM", {}]}
    torch_run("families_make.py", tmp_path, json.dumps(spec), "20KB")
    before = read_safetensors(tmp_path / "model")
    assert len(list(tmp_path.glob("model/model-*-of-*.safetensors"))) > 2
    (tmp_path / "model/model.safetensors.index.json").unlink()
    assert convert("model", "-o", "out")[0] == 0
    after = read_safetensors(tmp_path / "out")
    assert {n: a.tobytes() for n, (_, a) in after.items()} == {n: a.tobytes() for n, (_, a) in before.items()}


@pytest.mark.parametrize("kind", ["qwen2", "gemma2"])
def test_a_family_that_the_trainer_lacks_is_refused_with_those_that_it_has(
    convert: Call, tmp_path: Path, kind: str
) -> None:
    folder = make(tmp_path / "model", LLAMA)
    tensors = random_tensors(0, "BF16", {"w": (2,)})
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": f"{kind}_x"}))
    code, _, err = convert("model", "--to", "neox", "-o", "out")
    assert (code, f"{kind}_x models are not written for GPT-NeoX; gpt_neox, llama, mistral are" in err) == (
        2,
        True,
    ), err
