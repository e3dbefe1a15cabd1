"""What nanotron computes from the shards is what transformers computes from Hugging Face's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun
from tests.checkpoints.models import LLAMA, make

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "halves": (LLAMA, {"tp": 2, "pp": 2}),
    "pairs": (LLAMA, {"tp": 4, "rope_interleaved": True}),
    "tied": ({**LLAMA, "tie_word_embeddings": True}, {"tp": 2, "rope_interleaved": True}),
    "odd": ({**LLAMA, "vocab_size": 157, "num_key_value_heads": 8}, {"tp": 2}),
}


@pytest.mark.torch
def test_logits_of_shards_and_of_both_directions(torch_run: TorchRun, tmp_path: Path) -> None:
    jobs = {}
    for name, (config, options) in CASES.items():
        source = make(tmp_path / f"{name}-source", config, "F32", sigma=0.4)
        convert(source, "nanotron", tmp_path / name, ConvertOptions(**options))
        convert(tmp_path / name, "hf", tmp_path / f"{name}-back", ConvertOptions())
        jobs[name] = [str(tmp_path / name), str(source)]
        jobs[f"{name} back"] = [str(tmp_path / name), str(tmp_path / f"{name}-back")]
    wrong = ConvertOptions(rope_interleaved=True)
    convert(tmp_path / "halves", "hf", tmp_path / "wrong", wrong)
    jobs["wrong"] = [str(tmp_path / "halves"), str(tmp_path / "wrong")]
    (tmp_path / "wrong/config.json").write_text(json.dumps(LLAMA))
    found = json.loads(torch_run("nanotron_flow.py", json.dumps(jobs)))
    assert set(found) == set(jobs)
    assert found.pop("wrong") > 1e-3
    assert {name: error for name, error in found.items() if not error < 1e-6} == {}
