"""What the trainer computes from its shards is what transformers computes from our output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun

NEOX = {
    "family": "neox",
    "parallel": False,
    "tied": False,
    "tp": 1,
    "naming": "new",
    "layout": "pipelined",
    "order": "",
    "heads": 8,
    "kv": 8,
    "dtype": "float32",
}
LLAMA = {**NEOX, "family": "llama", "kv": 4, "order": "concat"}
CASES: dict[str, dict[str, Any]] = {
    "neox tp1": NEOX,
    "neox tp2": {**NEOX, "tp": 2},
    "neox tp4 tied": {**NEOX, "tp": 4, "tied": True, "naming": "legacy"},
    "neox tp2 parallel": {**NEOX, "tp": 2, "parallel": True, "naming": "te"},
    "neox tp4 parallel sequential": {**NEOX, "tp": 4, "parallel": True, "layout": "sequential"},
    "neox tp2 nested": {**NEOX, "tp": 2, "layout": "nested", "naming": "legacy"},
    "llama tp2": {**LLAMA, "tp": 2},
    "llama tp4 per head": {**LLAMA, "tp": 4, "order": "per-head"},
    "llama tp2 ungrouped legacy": {**LLAMA, "tp": 2, "kv": 8, "naming": "legacy", "tied": True},
}

pytestmark = pytest.mark.torch


def made(torch_run: TorchRun, folder: Path, cases: dict[str, dict[str, Any]]) -> None:
    jobs = {name: [str(folder / name), spec] for name, spec in cases.items()}
    torch_run("neox_flow.py", "make", json.dumps(jobs))


def errors(torch_run: TorchRun, neox: Path, hf: Path, cases: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The largest difference of any logit, relative to the largest logit."""
    jobs = {name: [str(neox / name), spec, str(hf / name)] for name, spec in cases.items()}
    said = json.loads(torch_run("neox_flow.py", "logits", json.dumps(jobs)))
    return {name: found["error"] / found["scale"] for name, found in said.items()}


def test_logits_of_trained_checkpoints(torch_run: TorchRun, tmp_path: Path) -> None:
    made(torch_run, tmp_path / "neox", CASES)
    for name, spec in CASES.items():
        options = ConvertOptions(neox_gqa_layout=spec["order"], verify="roundtrip")
        convert(tmp_path / "neox" / name, "hf", tmp_path / "hf" / name, options)
    found = errors(torch_run, tmp_path / "neox", tmp_path / "hf", CASES)
    assert {name: e for name, e in found.items() if not e < 1e-6} == {}
    assert set(found) == set(CASES)


def test_logits_of_checkpoints_that_we_wrote(torch_run: TorchRun, tmp_path: Path) -> None:
    made(torch_run, tmp_path / "one", {name: {**spec, "tp": 1} for name, spec in CASES.items()})
    written = {n: {**s, "layout": "sequential"} if s["layout"] == "nested" else s for n, s in CASES.items()}
    for name, spec in written.items():
        order = ConvertOptions(neox_gqa_layout=spec["order"])
        convert(tmp_path / "one" / name, "hf", tmp_path / "hf" / name, order)
        options = ConvertOptions(
            tp=spec["tp"],
            naming=spec["naming"],
            layout=spec["layout"],
            neox_gqa_layout=spec["order"],
        )
        convert(tmp_path / "hf" / name, "neox", tmp_path / "neox" / name, options)
    found = errors(torch_run, tmp_path / "neox", tmp_path / "hf", written)
    assert {name: e for name, e in found.items() if not e < 1e-6} == {}
    assert set(found) == set(CASES)
