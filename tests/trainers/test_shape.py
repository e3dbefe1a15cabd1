"""The arithmetic of models against published numbers."""

from __future__ import annotations

import json
import subprocess

import pytest

from hpctrain_job.arithmetic.model_shape import Shape
from tests.trainers.conftest import LIMIT, SHAPE
from tests.trainers.test_numbers import NEMOTRON_3_NANO

LLAMA_3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def _shape(**changes: object) -> Shape:
    shape = Shape.of({**LLAMA_3_8B, **changes})
    assert shape is not None
    return shape


def test_parameters_of_llama_3_8b() -> None:
    assert _shape().parameters == 8_030_261_248


@pytest.mark.parametrize(
    ("length", "causal", "frozen", "giga"),
    [
        (2048, True, False, 46.6),
        (4096, True, False, 48.25),
        (8192, True, False, 51.5),
        (4096, True, True, 32.17),
        (4096, False, False, 51.5),
        (8192, False, False, 57.9),
    ],
)
def test_flops_per_token_of_llama_3_8b(length: int, causal: bool, frozen: bool, giga: float) -> None:
    flops = _shape().flops_per_token(length, causal=causal, frozen=frozen)
    assert flops / 1e9 == pytest.approx(giga, abs=0.05)


def test_adapters_on_every_linear_layer() -> None:
    """PEFT reports 41,943,040 for r = 16 and all-linear on Llama-3-8B."""
    assert _shape().adapters(16) == 41_943_040


def test_tied_embeddings_count_once() -> None:
    assert _shape().parameters - _shape(tie_word_embeddings=True).parameters == 128256 * 4096


def test_the_unknown_has_no_numbers() -> None:
    assert Shape.of({**SHAPE, "model_type": "mamba2"}) is None
    assert Shape.of({"model_type": "llama"}) is None
    assert Shape.of({**LLAMA_3_8B, "model_type": "mixtral"}) is None
    assert Shape.of({}) is None


SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 256,
}
CHOICE = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
HYBRID = {
    "num_hidden_layers": 4,
    "hybrid_override_pattern": "M*-E",
    "head_dim": 16,
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "ssm_state_size": 16,
    "n_groups": 2,
    "n_routed_experts": 4,
    "moe_shared_expert_intermediate_size": 80,
}
FAMILIES: dict[str, dict[str, object]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {"head_dim": 32, "tie_word_embeddings": True},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"head_dim": 32, "num_experts": 4, "mlp_only_layers": [1], **CHOICE},
    "nemotron_h": {**HYBRID, **CHOICE},
}
COUNT = """
import json, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
for kind, values in json.loads(sys.argv[1]).items():
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **values))
    print(kind, sum(weight.numel() for weight in model.parameters()))
"""


@pytest.mark.torch
def test_parameters_are_those_of_the_real_models(torch_python: str) -> None:
    """Every family that is counted here, made by transformers without memory."""
    wanted = {kind: {**SMALL, **more} for kind, more in FAMILIES.items()}
    done = subprocess.run(
        [torch_python, "-c", COUNT, json.dumps(wanted)], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    real = dict(line.split() for line in done.stdout.splitlines())
    ours = {kind: Shape.of({**values, "model_type": kind}) for kind, values in wanted.items()}
    assert {kind: str(shape and shape.parameters) for kind, shape in ours.items()} == real


def test_a_mixture_of_experts_is_multiplied_with_a_part_of_itself() -> None:
    """Mixtral-8x7B: 46.7 billion weights, 12.9 billion for a token, its embeddings counted too."""
    config = {"num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000, "model_type": "mixtral"}
    shape = _shape(**config)
    assert shape.parameters == pytest.approx(46.7e9, rel=0.001)
    assert shape.active + 32000 * 4096 == pytest.approx(12.9e9, rel=0.002)
    assert shape.adapters(8) is None
    assert shape.flops_per_token(0) == 6 * shape.active


def test_nemotron_3_nano_is_a_hybrid_of_30_billion_with_3_a_token() -> None:
    shape = Shape.of(NEMOTRON_3_NANO)
    assert shape is not None
    assert shape.parameters == pytest.approx(31.6e9, rel=0.01)
    assert shape.active == pytest.approx(3.2e9, rel=0.05)
    scan = shape.flops_per_token(0) - 6 * shape.active
    assert scan == 23 * 21 * 64 * 64 * 128
