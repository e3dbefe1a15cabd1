"""Trainers' settings say what tensors cannot: without them, or with another's, nothing is converted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.checkpoints.conftest import Call
from tests.checkpoints.models import GPT_NEOX, LLAMA, make

PARALLEL = {**GPT_NEOX, "rotary_pct": 0.25, "use_parallel_residual": True, "tie_word_embeddings": True}


@pytest.fixture
def neox(convert: Call, tmp_path: Path) -> Path:
    make(tmp_path / "model", PARALLEL)
    assert convert("model", "--to", "neox", "-o", "neox")[0] == 0
    return tmp_path / "neox"


@pytest.mark.parametrize("recorded", [True, False])
def test_a_checkpoint_without_its_settings_is_refused(convert: Call, neox: Path, recorded: bool) -> None:
    shutil.move(neox / "global_step0/configs", neox.parent / "configs")
    if not recorded:
        (neox / "conversion.json").unlink()
    code, _, err = convert("neox", "-o", "back", "--verify", "logits")
    assert code == 2
    assert "error[checkpoint-config]: neox/global_step0 holds no settings of its run" in err
    assert "--config FILE" in err
    assert not (neox.parent / "back").exists()
    assert convert("neox", "-o", "back", "--config", "configs")[0] == 0
    back = json.loads((neox.parent / "back/config.json").read_text())
    assert (back["rotary_pct"], back["use_parallel_residual"]) == (0.25, True)


def test_hugging_faces_configuration_is_not_taken_for_the_trainers(convert: Call, neox: Path) -> None:
    code, _, err = convert("neox", "-o", "back", "--config", "model/config.json")
    assert code == 2
    assert "model/config.json is a configuration of Hugging Face" in err
    assert "the run's YAML" in err


def test_settings_of_another_run_are_refused(convert: Call, neox: Path) -> None:
    file = neox / "global_step0/configs/model.yml"
    settings = yaml.safe_load(file.read_text())
    file.rename(neox.parent / "right.yml")
    other = neox.parent / "other.yml"
    other.write_text(yaml.safe_dump({**settings, "num_attention_heads": 8}))
    code, _, err = convert("neox", "-o", "back", "--config", "other.yml")
    assert code == 7
    assert "other.yml sets num_attention_heads 8, and the checkpoint was saved with 4" in err


def test_settings_without_the_models_sizes_are_not_enough(convert: Call, neox: Path) -> None:
    (neox / "global_step0/configs/model.yml").write_text("train_batch_size: 4\n")
    code, _, err = convert("neox", "-o", "back")
    assert code == 2
    assert "model.yml does not set num_layers" in err


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"use_mup": True}, "use_mup has no equal"),
        ({"attention_config": [[["global", "local"], 2]]}, "attention_config local has no equal"),
        ({"attention-config": ["sparse_fixed"] * 3}, "attention_config sparse_fixed has no equal"),
        ({"sliding_window_width": 32}, "sliding_window_width has no equal"),
        ({"apply_residual_connection_post_layernorm": True}, "apply_residual_connection_post_layernorm has"),
    ],
)
def test_settings_that_compute_otherwise_with_the_same_tensors_are_refused(
    convert: Call, neox: Path, setting: dict[str, object], says: str
) -> None:
    file = neox / "global_step0/configs/model.yml"
    settings = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**settings, "attention_config": [[["flash"], 3]]}))
    assert convert("neox", "-o", "same")[0] == 0
    file.write_text(yaml.safe_dump({**settings, **setting}))
    code, _, err = convert("neox", "-o", "back")
    assert (code, says in err) == (2, True), err


def test_a_scaling_that_nanotron_never_read_is_not_written_as_if_it_had(
    convert: Call, tmp_path: Path
) -> None:
    make(tmp_path / "model", LLAMA)
    assert convert("model", "--to", "nanotron", "-o", "nanotron")[0] == 0
    file = tmp_path / "nanotron/0/model_config.json"
    plain = file.read_text()
    file.write_text(json.dumps({**json.loads(plain), "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}))
    code, _, err = convert("nanotron", "-o", "back")
    assert (code, "nanotron never reads: it computes with plain rotary embeddings" in err) == (2, True), err
    (tmp_path / "plain.json").write_text(plain)
    assert convert("nanotron", "--config", "plain.json", "-o", "back")[0] == 0
    assert "rope_scaling" not in json.loads((tmp_path / "back/config.json").read_text())
