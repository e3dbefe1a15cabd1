from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import read_safetensors, write_safetensors
from tests.checkpoints.models import LLAMA, make

MODELS = {
    "grouped": LLAMA,
    "plain": {**LLAMA, "num_key_value_heads": 8},
    "tied": {**LLAMA, "tie_word_embeddings": True},
    "odd vocabulary": {**LLAMA, "vocab_size": 157},
}


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (2, 1), (2, 2), (4, 3)])
@pytest.mark.parametrize("kind", MODELS)
def test_hf_to_nanotron_and_back_is_identical(
    tmp_path: Path, kind: str, tp: int, pp: int, interleaved: bool
) -> None:
    dtype = {1: "BF16", 2: "F16", 4: "F32"}[tp]
    source = make(tmp_path / "source", MODELS[kind], dtype)
    options = ConvertOptions(tp=tp, pp=pp, rope_interleaved=interleaved, verify="roundtrip", iteration=30)
    convert(source, "nanotron", tmp_path / "nanotron", options)
    convert(tmp_path / "nanotron", "hf", tmp_path / "back", ConvertOptions(verify="roundtrip"))
    before, after = read_safetensors(source), read_safetensors(tmp_path / "back")
    assert {k: (d, a.shape, a.tobytes()) for k, (d, a) in before.items()} == {
        k: (d, a.shape, a.tobytes()) for k, (d, a) in after.items()
    }
    back = json.loads((tmp_path / "back/config.json").read_text())
    assert {k: back.get(k, v) for k, v in MODELS[kind].items()} == MODELS[kind]


def _native(folder: Path, tp: int) -> dict[str, np.ndarray]:
    """A query-key-value tensor sharded as nanotron's own code describes it: chunk by chunk."""
    random = np.random.default_rng(2)
    sizes, width = (32, 16, 16), 32
    whole = random.normal(size=(sum(sizes), width)).astype(np.float32)
    for rank in range(tp):
        parts, said, start, local = [], [], 0, 0
        for size in sizes:
            share = size // tp
            low = start + rank * share
            parts.append(whole[low : low + share])
            said.append(
                f"{local},{local + share},None|None,None,None#{low},{low + share},None|None,None,None"
            )
            start, local = start + size, local + share
        name = f"model_weight_pp-rank-0-of-1_tp-rank-{rank}-of-{tp}.safetensors"
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(
            folder / name,
            {"data": ("F32", np.concatenate(parts))},
            version="1.5",
            local_global_slices_pairs=";".join(said),
            unsharded_shape="(np.int64(64), 32)",
        )
    return {"q": whole[:32], "k": whole[32:48], "v": whole[48:]}


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    source = make(tmp_path / "source", LLAMA, "F32")
    convert(source, "nanotron", tmp_path / "nanotron", ConvertOptions(tp=2, pp=2))
    return tmp_path / "nanotron"


def test_follows_the_slices_that_a_shard_carries(trained: Path, tmp_path: Path) -> None:
    """The shards of one tensor are replaced by four that another writer cut."""
    folder = trained / "0/model/model/decoder/1/pp_block/attn/qkv_proj"
    shutil.rmtree(folder)
    want = _native(folder, 4)
    convert(trained, "hf", tmp_path / "out", ConvertOptions())
    have = read_safetensors(tmp_path / "out")
    for letter, array in want.items():
        assert (have[f"model.layers.1.self_attn.{letter}_proj.weight"][1] == array).all()


def test_interleaved_rows_become_halves(trained: Path, tmp_path: Path) -> None:
    convert(trained, "hf", tmp_path / "out", ConvertOptions(rope_interleaved=True))
    name = "model.layers.0.self_attn.q_proj.weight"
    before, after = (
        read_safetensors(tmp_path / "source")[name][1],
        read_safetensors(tmp_path / "out")[name][1],
    )
    want = before.reshape(8, 2, 2, 32).swapaxes(1, 2).reshape(32, 32)
    assert (after == want).all()


def test_an_unsaid_rotation_must_be_said(trained: Path, tmp_path: Path) -> None:
    file = trained / "0/model_config.json"
    said = json.loads(file.read_text())
    del said["rope_interleaved"]
    file.write_text(json.dumps(said))
    with pytest.raises(ConfigError, match="does not say whether its rotary pairs"):
        convert(trained, "hf", tmp_path / "out", ConvertOptions())


def _shard(trained: Path) -> Path:
    return next(trained.glob("0/model/model/decoder/0/**/qkv_proj/*tp-rank-1-of-2*"))


def _lost_rank(trained: Path) -> str:
    _shard(trained).unlink()
    return "qkv_proj.weight has no file of rank 1 of 2"


def _lost_tensor(trained: Path) -> str:
    shutil.rmtree(trained / "0/model/model/decoder/2/pp_block/mlp/down_proj")
    return "decoder.2.pp_block.mlp.down_proj.weight has no file"


def _truncated(trained: Path) -> str:
    path = _shard(trained)
    path.write_bytes(path.read_bytes()[:-4])
    return f"{path.name} has .* bytes where its header says"


def _unknown(trained: Path) -> str:
    folder = trained / "0/model/model/decoder/7/pp_block/input_layernorm"
    folder.mkdir(parents=True)
    shutil.copy(next(trained.glob("0/model/model/decoder/1/pp_block/input_layernorm/*")), folder)
    return "decoder.7.pp_block.input_layernorm.weight has no place"


def _stale_rank(trained: Path) -> str:
    path = _shard(trained)
    shutil.copy(path, path.parent / path.name.replace("pp-rank-0-of-2", "pp-rank-1-of-2"))
    return "has two files for one rank"


def _overlap(trained: Path) -> str:
    path = _shard(trained)
    shutil.copy(path.parent / path.name.replace("tp-rank-1", "tp-rank-0"), path)
    return "has a gap or overlap"


@pytest.mark.parametrize(
    "harm",
    [_lost_rank, _lost_tensor, _truncated, _unknown, _stale_rank, _overlap],
    ids=lambda h: h.__name__,
)
def test_damage_is_named_and_leaves_nothing(trained: Path, tmp_path: Path, harm: Any) -> None:
    message = harm(trained)
    with pytest.raises(HpctrainError, match=message) as caught:
        convert(trained, "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code in (2, 7)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["nanotron", "neox"])
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_scaled_rotary_embeddings_are_refused_by_trainers_without_them(
    tmp_path: Path, key: str, target: str
) -> None:
    make(tmp_path / "model", {**LLAMA, key: {"rope_type": "llama3", "factor": 8.0}})
    with pytest.raises(HpctrainError, match="cannot scale rotary embeddings"):
        convert(tmp_path / "model", target, tmp_path / "out", ConvertOptions())
