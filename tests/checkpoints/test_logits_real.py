"""`--verify logits` beside transformers: it computes too, by code that shares nothing with ours."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from hpctrain_plugins.checkpoints.logits import library
from hpctrain_plugins.checkpoints.tensors import Model
from tests.checkpoints.conftest import ROOT, Call, TorchRun
from tests.checkpoints.models import GPT_NEOX, LLAMA, make

PARALLEL = {**GPT_NEOX, "use_parallel_residual": True, "tie_word_embeddings": True}


def convert_there(torch_run: TorchRun, *argv: object) -> int:
    out = torch_run("convert_here.py", sysconfig.get_path("purelib"), ROOT, *argv)
    return int(out.splitlines()[-1])


def judged(folder: Path) -> dict[str, Any]:
    logits: dict[str, Any] = json.loads((folder / "conversion.json").read_text())["logits"]
    return logits


@pytest.mark.torch
def test_transformers_computes_what_the_trainers_ranks_compute(torch_run: TorchRun, tmp_path: Path) -> None:
    make(tmp_path / "hf", PARALLEL, "F32", sigma=0.3)
    sharded, back = tmp_path / "neox", tmp_path / "back"
    options = ("--verify", "logits", "-o")
    assert convert_there(torch_run, tmp_path / "hf", "--to", "neox", "--tp", 2, *options, sharded) == 0
    assert convert_there(torch_run, sharded, *options, back) == 0
    for folder in (sharded, back):
        opinion = judged(folder)["library"]
        assert opinion["by"].startswith("transformers ")
        assert opinion["difference"] < library.LIMIT
    assert judged(back)["source_flow"] == "neox"


@pytest.mark.torch
def test_what_our_own_ways_both_take_for_granted_is_refused(torch_run: TorchRun, tmp_path: Path) -> None:
    """They compute full attention of a few tokens, on both sides; a window of 4 is another model."""
    config = {**LLAMA, "model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 4}
    make(tmp_path / "hf", config, "F32", sigma=0.3)
    out = tmp_path / "out"
    assert convert_there(torch_run, tmp_path / "hf", "--verify", "logits", "-o", out) == 7
    assert not out.exists()


def test_without_transformers_the_verdict_says_who_computed(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "hf", LLAMA, "F32", sigma=0.3)
    code, _, err = convert("hf", "--to", "nanotron", "--verify", "logits", "-o", "there")
    assert (code, "by two ways of our own: transformers is not installed here" in err) == (0, True), err
    assert judged(tmp_path / "there")["library"] == {"reason": "transformers is not installed here"}
    code, _, err = convert("hf", "--verify", "logits", "-o", "copy")
    assert (code, "by one way of our own, which proves values and no meaning" in err) == (0, True), err


def test_code_that_a_model_brings_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "find_spec", lambda _name: True)
    model = Model({}, config={"auto_map": {"AutoModel": "modeling_x.X"}})
    assert library.ask(tmp_path, model, [1]).reason == "the model brings code of its own, which is not run"
