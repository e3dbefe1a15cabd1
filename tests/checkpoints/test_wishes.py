"""`hpctrain convert` where the request, the configuration and the tensors do not fit each other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints.conftest import Call, read_safetensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.checkpoints.test_peft import adapter

TWO = {**LLAMA, "num_hidden_layers": 2}


def said(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def bare(root: Path) -> Path:
    """Weights of a Llama without a configuration."""
    folder = make(root / "bare", TWO)
    (folder / "config.json").unlink()
    return folder


def test_weights_without_a_configuration_are_written_with_a_warning(convert: Call, tmp_path: Path) -> None:
    bare(tmp_path)
    code, _, err = convert("bare", "-o", "out")
    warned = "the checkpoint holds no configuration: these are weights alone; --config FILE"
    assert (code, f"warning[checkpoint-config]: {warned}" in err) == (0, True), err
    assert json.loads((tmp_path / "out/conversion.json").read_text())["warnings"] == [warned]
    (tmp_path / "c.json").write_text(json.dumps(TWO))
    assert convert("bare", "--config", "c.json", "-o", "whole")[2].count("warning") == 0
    assert json.loads((tmp_path / "whole/config.json").read_text())["model_type"] == "llama"


@pytest.mark.parametrize("target", ["neox", "nanotron"])
def test_what_needs_a_configuration_says_so(convert: Call, tmp_path: Path, target: str) -> None:
    bare(tmp_path)
    code, _, err = convert("bare", "--to", target, "-o", "out")
    assert (code, "error[checkpoint-config]: the checkpoint holds no configuration" in err) == (2, True)
    assert "--config FILE" in err


@pytest.mark.parametrize("option", ["--config", "--tokenizer", "--base"])
def test_a_file_that_is_not_there_is_a_wrong_command_line(convert: Call, tmp_path: Path, option: str) -> None:
    make(tmp_path / "model", TWO)
    code, _, err = convert("model", option, "../nope", "-o", "out")
    assert (code, "error[usage]" in err, "../nope" in err) == (2, True, True)


def test_a_folder_without_a_configuration_is_none(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", TWO)
    (tmp_path / "empty").mkdir()
    code, _, err = convert("model", "--config", "empty", "-o", "out")
    assert (code, "empty holds no config.json" in err) == (2, True)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("neox", "GPT-NeoX has no head_dim: 8 heads of 8 are not hidden_size 32"),
        ("nanotron", "nanotron's Llama has no head_dim"),
    ],
)
def test_heads_of_a_size_of_their_own(convert: Call, tmp_path: Path, target: str, says: str) -> None:
    folder = make(tmp_path / "model", TWO)
    said(folder, head_dim=8)
    tensors = read_safetensors(folder)
    for name, (kind, array) in tensors.items():
        if "_proj" in name and "self_attn" in name:
            axis = 1 if "o_proj" in name else 0
            tensors[name] = (kind, array.repeat(2, axis))
    write_safetensors(folder / "model.safetensors", tensors)
    code, _, err = convert("model", "--to", target, "-o", "out")
    assert (code, f"error[checkpoint-unsupported]: {says}" in err) == (2, True), err
    assert convert("model", "-o", "hf")[0] == 0


@pytest.mark.parametrize("target", ["hf", "neox", "nanotron"])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"num_key_value_heads": 2}, ("self_attn.k_proj", 16, 8)),
        ({"num_attention_heads": 4}, ("self_attn.k_proj", 16, 32)),
        ({"intermediate_size": 40}, ("mlp.gate_proj", 48, 40)),
    ],
)
def test_a_shape_is_that_of_the_source(
    convert: Call, tmp_path: Path, target: str, change: dict[str, int], found: tuple[str, int, int]
) -> None:
    said(make(tmp_path / "model", TWO), **change)
    code, _, err = convert("model", "--to", target, "-o", "out")
    name, real, wanted = found
    says = f"{name}.weight of layer 0 has shape [{real}, 32] where config.json says [{wanted}, 32]"
    assert (code, says in err) == (7, True), err


def test_a_tensor_that_one_layer_has_alone(convert: Call, tmp_path: Path) -> None:
    folder = make(tmp_path / "model", TWO)
    tensors = read_safetensors(folder)
    tensors["model.layers.0.foo.weight"] = tensors["model.norm.weight"]
    write_safetensors(folder / "model.safetensors", tensors)
    code, _, err = convert("model", "-o", "out")
    assert (code, "foo.weight stands in layer 0 of model and not in layer 1" in err) == (7, True), err


def test_a_configuration_of_another_family_names_the_source(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", TWO)
    make(tmp_path / "other", GPT_NEOX)
    code, _, err = convert("model", "--config", "other", "-o", "out")
    says = "gpt_neox.embed_in.weight is missing from model, whose configuration says model_type gpt_neox"
    assert (code, says in err) == (7, True), err


def test_an_adapter_is_the_requests_fault_whatever_tp(convert: Call, tmp_path: Path) -> None:
    adapter(tmp_path)
    code, _, err = convert("adapter", "--to", "neox", "-o", "out")
    assert (code, "error[checkpoint-unsupported]" in err, "joined or split" in err) == (2, True, True)


def test_the_base_of_an_adapter_is_told(convert: Call, tmp_path: Path) -> None:
    adapter(tmp_path)
    shutil.copytree(tmp_path / "base", tmp_path / "copy")
    _, _, err = convert("adapter", "--base", "copy", "-o", "out")
    assert "base: copy" in err.splitlines()
    assert json.loads((tmp_path / "out/conversion.json").read_text())["decisions"]["base"] == "copy"
    assert f"base: {tmp_path}/base" in convert("adapter", "-o", "named")[2].splitlines()


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (
            ("--to", "hf", "--tp", 2),
            "--tp has no meaning for what is written as hf, which takes --shard",
        ),
        (("--to", "neox", "--pp", 5), "--pp has no meaning for what is written as neox"),
        (("--to", "nanotron", "--naming", "te"), "--naming has no meaning for what is written as nanotron"),
    ],
)
def test_an_option_without_a_use_is_refused(
    convert: Call, tmp_path: Path, argv: tuple[object, ...], says: str
) -> None:
    make(tmp_path / "model", TWO)
    code, _, err = convert("model", *argv, "-o", "out")
    assert (code, f"error[usage]: {says}" in err) == (2, True), err


def test_more_stages_than_the_model_fills(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", TWO)
    code, _, err = convert("model", "--to", "nanotron", "--pp", 20, "-o", "out")
    assert (code, "2 layers leave some of 20 pipeline stages empty" in err) == (2, True), err


def test_an_order_of_rows_that_the_record_contradicts(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", TWO)
    convert("model", "--to", "neox", "--neox-gqa-layout", "per-head", "-o", "neox")
    code, _, err = convert("neox", "--neox-gqa-layout", "concat", "-o", "out")
    assert (code, "error[checkpoint-choice]" in err, "written with per-head" in err) == (2, True, True)
    assert convert("neox", "--neox-gqa-layout", "per-head", "-o", "out")[0] == 0


def test_words_for_a_mistyped_source(convert: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", "/hub/cache")
    make(tmp_path / "model", TWO)
    _, _, err = convert("modle", "-o", "x")
    assert ("no folder and no run 'modle'" in err, "help: model" in err) == (True, True), err
    _, _, err = convert("org/Foo", "-o", "x")
    assert "no run 'org/Foo', nor a model of that name in the hub's cache, /hub/cache" in err
    assert "hf download org/Foo" in err


def test_the_folder_that_is_here_has_a_name(
    convert: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make(tmp_path / "model", TWO))
    assert "-o model-neox" in convert(".", "--to", "neox")[2]


def test_a_dry_run_writes_nothing_and_needs_no_free_name(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", TWO)
    (tmp_path / "model-neox").mkdir()
    code, out, _ = convert("model", "--to", "neox", "--tp", 2, "--dry-run")
    rows = [line for line in out.splitlines() if "2.attention.query_key_value.weight" in line]
    assert (code, len(rows), len(set(rows))) == (0, 2, 2)
    assert [line.split()[1] for line in rows] == ["0", "1"]
    named = ", ".join(f"model.layers.0.self_attn.{letter}_proj.weight" for letter in "qkv")
    assert all(row.endswith(f"split, joined of 3  {named}") for row in rows)


def test_the_help_lists_the_formats(convert: Call) -> None:
    _, out, _ = convert("--help")
    text = " ".join(out.split())
    trainers = "megatron, megatron-legacy, nanotron, neox, peft"
    assert f"read dcp, deepspeed-universal, deepspeed-zero, hf, hf-sharded, {trainers}" in text
    zero = "deepspeed-universal (of ZeRO), deepspeed-zero (of ZeRO: --ranks)"
    assert f"written {zero}, hf, megatron (torch_dist), nanotron (Llama models), neox" in text


def test_forms_that_are_no_checkpoint_are_called_what_they_are(convert: Call, tmp_path: Path) -> None:
    old = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
    (tmp_path / "old").mkdir()
    (tmp_path / "old/pytorch_model.bin").write_bytes(old)
    code, _, err = convert("old", "-o", "x")
    assert (code, "pytorch_model.bin is in torch's form of before 1.6" in err) == (2, True), err
    code, _, err = convert("old/pytorch_model.bin", "-o", "x")
    assert (code, "pytorch_model.bin is a file, and a checkpoint is a folder" in err) == (2, True), err
