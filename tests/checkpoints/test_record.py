"""What a conversion says of each tensor, and what a record beside a source is worth when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions, Report
from tests.checkpoints.models import GPT_NEOX, LLAMA, make

PARAMETERS = 33_504
"""Of LLAMA."""


def written(tmp_path: Path, config: dict[str, Any], target: str = "neox", **options: Any) -> Report:
    make(tmp_path / "hf", config)
    return convert(tmp_path / "hf", target, tmp_path / target, ConvertOptions(fsync=False, **options))


def rows(report: Report, name: str) -> list[tuple[str, list[str]]]:
    found = [row for row in report.mapping if row["name"] == name]
    return [(row["how"], [source["name"] for source in row["from"]]) for row in found]


def qkv(index: int) -> list[str]:
    return [f"model.layers.{index}.self_attn.{letter}_proj.weight" for letter in "qkv"]


def test_each_tensor_says_how_it_is_made_and_of_which(tmp_path: Path) -> None:
    report = written(tmp_path, LLAMA, tp=2, neox_gqa_layout="per-head", verify="roundtrip")
    fused = ("split, joined of 3, rows reordered", qkv(0))
    assert rows(report, "2.attention.query_key_value.weight") == [fused, fused]
    assert rows(report, "2.input_layernorm.scale") == [
        ("copied", ["model.layers.0.input_layernorm.weight"]),
        ("copied", ["model.layers.0.input_layernorm.weight"]),
    ]
    assert rows(report, "6.norm.scale") == [("copied", ["model.norm.weight"])] * 2
    assert {row["from"][0]["file"] for row in report.mapping} == {"model.safetensors"}
    said = json.loads((tmp_path / "neox/conversion.json").read_text())
    assert [row["how"] for row in said["mapping"]] == [row["how"] for row in report.mapping]
    back = convert(tmp_path / "neox", "hf", tmp_path / "back", ConvertOptions(dtype="fp32"))
    fused_name = "2.attention.query_key_value.weight"
    assert rows(back, qkv(0)[0]) == [("split, joined of 2, rows reordered, widened", [fused_name] * 2)]
    assert rows(back, "model.layers.0.mlp.down_proj.weight") == [
        ("joined of 2, widened", ["2.mlp.linear2.weight"] * 2)
    ]


def test_a_tensor_of_nanotron_goes_by_its_own_name(tmp_path: Path) -> None:
    report = written(tmp_path, {**LLAMA, "vocab_size": 159}, "nanotron", tp=2, rope_interleaved=True)
    name = "model.decoder.1.pp_block.attn.qkv_proj.weight"
    assert rows(report, name) == [("split, joined of 3, rows reordered", qkv(1))] * 2
    embedding = "model.token_position_embeddings.pp_block.token_embedding.weight"
    assert [how for how, _ in rows(report, embedding)] == ["split", "split, padded"]
    back = convert(tmp_path / "nanotron", "hf", tmp_path / "back", ConvertOptions())
    assert rows(back, qkv(1)[2]) == [("split, joined of 2", [name] * 2)]


@pytest.mark.parametrize(("parallel", "how"), [(True, "sum of 2"), (False, "copied")])
def test_biases_of_ranks(tmp_path: Path, parallel: bool, how: str) -> None:
    report = written(tmp_path, {**GPT_NEOX, "use_parallel_residual": parallel}, tp=2)
    bias = [how for how, _ in rows(report, "2.attention.dense.bias")]
    assert bias == (["copied", "zeros"] if parallel else ["copied", "copied"])
    back = convert(tmp_path / "neox", "hf", tmp_path / "back", ConvertOptions())
    assert rows(back, "gpt_neox.layers.0.attention.dense.bias")[0][0] == how


def test_the_record_counts_what_was_checked_and_how_long_it_took(tmp_path: Path) -> None:
    report = written(tmp_path, LLAMA, verify="roundtrip")
    said = json.loads((tmp_path / "neox/conversion.json").read_text())
    assert said["seconds"] == report.seconds > 0
    tensors = sum(p.stat().st_size for p in (tmp_path / "hf").glob("*.safetensors"))
    assert (said["bytes_checked"], 0.9 * tensors < said["bytes_compared"] < tensors) == (0, True)


def flip(file: Path, at: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[at] ^= 1
    file.write_bytes(raw)


@pytest.mark.parametrize("target", ["hf", "neox", "nanotron"])
def test_a_changed_byte_in_what_we_wrote_is_found(tmp_path: Path, target: str) -> None:
    make(tmp_path / "hf", LLAMA)
    noted = tmp_path / "noted"
    convert(tmp_path / "hf", "hf", noted, ConvertOptions())
    assert convert(noted, target, tmp_path / "whole", ConvertOptions()).bytes_checked == PARAMETERS * 2
    flip(noted / "model.safetensors", -999)
    says = f"lm_head.weight in {noted}/model.safetensors does not match the checksum in {noted}/conversion"
    with pytest.raises(IntegrityError, match=says):
        convert(noted, target, tmp_path / "out", ConvertOptions(tp=1 if target == "hf" else 2, dtype="fp32"))


def test_a_changed_byte_of_nanotron_is_found_from_the_folder_and_from_the_step(tmp_path: Path) -> None:
    written(tmp_path, LLAMA, "nanotron", iteration=3)
    (file,) = (tmp_path / "nanotron/3/model/model/decoder/1").rglob("*qkv_proj*/*.safetensors")
    flip(file, -9)
    says = "model.decoder.1.pp_block.attn.qkv_proj.weight in .*does not match the checksum in"
    for source in (tmp_path / "nanotron", tmp_path / "nanotron/3"):
        with pytest.raises(IntegrityError, match=says):
            convert(source, "hf", tmp_path / "back", ConvertOptions())


def test_a_record_of_other_files_is_not_believed(tmp_path: Path) -> None:
    make(tmp_path / "hf", LLAMA)
    convert(tmp_path / "hf", "hf", tmp_path / "noted", ConvertOptions())
    other = make(tmp_path / "other", {**LLAMA, "intermediate_size": 56})
    for name in ("model.safetensors", "config.json"):
        (tmp_path / "noted" / name).write_bytes((other / name).read_bytes())
    assert convert(tmp_path / "noted", "hf", tmp_path / "out", ConvertOptions()).bytes_checked == 0


@pytest.mark.parametrize(
    "change",
    [{"crc32": "zz"}, {"crc32": None}, {"shape": "wide"}, {"shape": None}, {"dtype": []}],
    ids=str,
)
def test_a_record_that_makes_no_sense_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    make(tmp_path / "hf", LLAMA)
    record = tmp_path / "again/conversion.json"
    convert(tmp_path / "hf", "hf", tmp_path / "again", ConvertOptions(fsync=False))
    said = json.loads(record.read_text())
    said["mapping"][0].update(change)
    record.write_text(json.dumps(said))
    with pytest.raises(IntegrityError, match="cannot be read") as told:
        convert(tmp_path / "again", "neox", tmp_path / "neox", ConvertOptions(fsync=False))
    assert told.value.problems[0].where == str(record)
    assert not (tmp_path / "neox").exists()
