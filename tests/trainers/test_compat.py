"""A tokenizer saved by transformers 5 is rewritten so that 4 reads it too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_trl import compat
from tests.trainers.conftest import Trained


def _rewritten(folder: Path, said: dict[str, Any]) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(said))
    compat.readable_by_both(folder)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_newer_words_are_replaced(tmp_path: Path) -> None:
    said = {
        "tokenizer_class": "TokenizersBackend",
        "backend": "tokenizers",
        "extra_special_tokens": ["<a>"],
        "eos_token": "<|end|>",
    }
    assert _rewritten(tmp_path, said) == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "additional_special_tokens": ["<a>"],
        "eos_token": "<|end|>",
    }


def test_the_older_words_stay(tmp_path: Path) -> None:
    said = {"tokenizer_class": "LlamaTokenizer", "extra_special_tokens": {"image_token": "<i>"}}
    assert _rewritten(tmp_path, said) == said
    compat.readable_by_both(tmp_path / "nothing")


@pytest.mark.torch
def test_what_the_trainer_saves_is_in_the_older_form(learnt: Trained) -> None:
    for folder in ("model", "checkpoints/checkpoint-100"):
        said = json.loads((learnt.folder / folder / "tokenizer_config.json").read_text())
        assert said["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert not isinstance(said.get("extra_special_tokens"), list)
