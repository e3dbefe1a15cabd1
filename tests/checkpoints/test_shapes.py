"""Shapes follow from the configuration, outer tensors' too; where they do not, that is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert as convert_to
from hpctrain_plugins.checkpoints.formats.neox import shards as neox_shards
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Call, random_tensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make, shapes

ONE = [{**c, "num_hidden_layers": 1} for c in (GPT_NEOX, LLAMA)]
DAMAGES = [(config, name) for config in ONE for name in shapes(config)]


@pytest.mark.parametrize(("config", "name"), DAMAGES, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("lost", [True, False])
def test_every_tensor_that_is_lost_or_cut_is_named(
    convert: Call, tmp_path: Path, config: dict[str, Any], name: str, lost: bool
) -> None:
    folder = make(tmp_path / "model", config)
    harmed = shapes(config)
    if lost:
        del harmed[name]
    else:
        harmed[name] = (*harmed[name][:-1], harmed[name][-1] - 1)
    write_safetensors(folder / "model.safetensors", random_tensors(0, "BF16", harmed))
    code, _, err = convert("model", "-o", "out")
    assert code == 7, err
    assert name.partition("layers.0.")[2] or name in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("config", ONE, ids=["neox", "llama"])
def test_the_last_line_and_the_record_say_that_shapes_are_proven(
    convert: Call, tmp_path: Path, config: dict[str, Any]
) -> None:
    make(tmp_path / "model", config)
    code, _, err = convert("model", "-o", "out")
    assert (code, "round trip exact; shapes as the configuration says" in err) == (0, True), err
    assert json.loads((tmp_path / "out/conversion.json").read_text())["shapes"] == "configuration"


def test_an_unknown_family_is_called_unproven(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", {**LLAMA, "model_type": "novel"} | {"architectures": ["NovelForCausalLM"]})
    _, _, err = convert("model", "-o", "out")
    assert "; unproven: shapes" in err
    assert json.loads((tmp_path / "out/conversion.json").read_text())["shapes"] == "unproven"


def test_a_model_without_a_head_is_copied(convert: Call, tmp_path: Path) -> None:
    folder = make(tmp_path / "model", {**LLAMA, "architectures": ["LlamaModel"]})
    bare = {n.removeprefix("model."): s for n, s in shapes(LLAMA).items() if n != "lm_head.weight"}
    write_safetensors(folder / "model.safetensors", random_tensors(0, "BF16", bare))
    code, _, err = convert("model", "-o", "out")
    assert code == 0, err
    assert "shapes as the configuration says" in err


def _cut(tensors: neox_shards.Shards, key: tuple[int, str], axis: int | None) -> None:
    """Take the tensor away, or its last row or column on the last rank."""
    *ranks, last = tensors.tensors.pop(key)
    if axis is not None:
        tensors.tensors[key] = [*ranks, last.part(axis, 0, last.shape[axis] - 1)]


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize(
    "config",
    [ONE[0], {**ONE[0], "tie_word_embeddings": True}, {**ONE[1], "num_key_value_heads": 8}],
    ids=["neox", "tied", "llama"],
)
def test_every_damage_to_a_rank_of_gpt_neox_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], tp: int
) -> None:
    convert_to(make(tmp_path / "model", config), "neox", tmp_path / "neox", ConvertOptions(tp=tp))
    (tmp_path / "neox/conversion.json").unlink()
    read = neox_shards.read
    shards = read(tmp_path / "neox/global_step0").tensors
    axes: list[tuple[tuple[int, str], int | None]] = [
        (key, axis) for key, ranks in shards.items() for axis in (None, *range(len(ranks[0].shape)))
    ]
    for key, axis in axes:

        def harmed(step: Path, key: tuple[int, str] = key, axis: int | None = axis) -> neox_shards.Shards:
            shards_of_step = read(step)
            _cut(shards_of_step, key, axis)
            return shards_of_step

        monkeypatch.setattr(neox_shards, "read", harmed)
        with pytest.raises(HpctrainError):
            convert_to(tmp_path / "neox", "hf", tmp_path / "out", ConvertOptions(dry_run=True))
