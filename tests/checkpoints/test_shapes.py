"""Shapes follow from the configuration, outer tensors' too; where they do not, that is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
