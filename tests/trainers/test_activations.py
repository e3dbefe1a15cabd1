"""What a token leaves for the backward pass, against what autograd of a real torch saves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.arithmetic.model_shape import Shape
from tests.conftest import needs

TOKENS = 256
COUNT = Path(__file__).with_name("saved_bytes.py")
SMALL: dict[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 896,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 4096,
}


def saved(config: dict[str, Any], folder: Path, *words: str) -> float:
    """Bytes a token, counted in torch."""
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    (folder / "config.json").write_text(json.dumps(config))
    argv = (python, str(COUNT), str(folder / "config.json"), str(TOKENS), *words)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("llama", ()),
        ("llama", ("mixed",)),
        ("llama", ("recomputed",)),
        ("llama", ("mixed", "recomputed")),
        ("mistral", ()),
        ("qwen2", ()),
        ("qwen3", ("mixed",)),
    ],
)
def test_what_autograd_saves_is_counted(family: str, words: tuple[str, ...], tmp_path: Path) -> None:
    config = {**SMALL, "model_type": family}
    shape = Shape.of(config)
    assert shape is not None
    choices = {word: word in words for word in ("mixed", "recomputed")}
    counted = shape.backward_bytes(**choices)
    assert counted is not None
    counted -= 6 * SMALL["vocab_size"]  # logits, and the gradient of their softmax: not saved
    if choices["recomputed"]:
        layer = sum(
            (block.backward_bytes or 0) + (block.widened if choices["mixed"] else 0) for block in shape.blocks
        )
        counted -= layer // SMALL["num_hidden_layers"]  # that of the one that is recomputed
    matrices = shape.hidden * shape.vocab if choices["recomputed"] else shape.active
    copies = matrices * 2 / TOKENS if choices["mixed"] else 0
    assert saved(config, tmp_path, *words) == pytest.approx(counted + copies, rel=0.05)


@pytest.mark.parametrize("family", ["mixtral", "nemotron_h"])
def test_what_is_not_counted_has_no_number(family: str) -> None:
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    mamba = {"mamba_num_heads": 4, "mamba_head_dim": 64, "ssm_state_size": 16, "n_groups": 1}
    more = experts if family == "mixtral" else {**mamba, "hybrid_override_pattern": "M*"}
    shape = Shape.of({**SMALL, **more, "model_type": family})
    assert shape is not None
    assert shape.backward_bytes(mixed=False) is None
