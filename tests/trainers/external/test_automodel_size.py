"""What the plan says of an Automodel run's size, against Automodel's own adapters and published numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpctrain.model.train import Numbers
from hpctrain_job.arithmetic.model_shape import Shape
from hpctrain_plugins.trainers import automodel
from hpctrain_plugins.trainers.automodel import adapters, size
from hpctrain_plugins.trainers.external.config import Machine, merged
from tests.trainers.external import real, runs
from tests.trainers.test_shape import FAMILIES, LLAMA_3_8B, SMALL

MACHINE = Machine(gpus=8, nodes=2)
PEFT = "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 8\n"
BASE = """\
recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler: {{global_batch_size: 32, local_batch_size: 1, max_steps: 100}}
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.{how}
distributed: {{strategy: {strategy}, tp_size: {tp}}}
dataset: {{_target_: x.y, seq_length: 4096}}
optimizer: {{_target_: torch.optim.AdamW, lr: 1.0e-5}}
"""


def _numbers(
    more: str = "", *, model: dict[str, Any] | None = LLAMA_3_8B, strategy: str = "fsdp2", tp: int = 1
) -> Numbers:
    """On two nodes of four GPUs."""
    text = BASE.format(how="from_pretrained", strategy=strategy, tp=tp) + more
    texts = {"x.yaml": text} | ({"config.json": json.dumps(model)} if model else {})
    options = {"model_config": "config.json"} if model else {}
    return runs.train(automodel, runs.spec(automodel, texts=texts, options=options)).numbers


def test_llama_3_8b_with_lora_is_what_automodel_published() -> None:
    """402 TFLOP/s at 12,472.87 tokens/s are 32.2 GFLOP a token; the whole model takes 48.25."""
    lora, full = _numbers(PEFT), _numbers()
    assert (lora.parameters, full.parameters) == (8_030_261_248, 8_030_261_248)
    assert (lora.trained, full.trained) == (41_943_040 // 2, 8_030_261_248)
    assert lora.flops_causal == pytest.approx(402e12 / 12472.87, rel=0.002)
    assert full.flops_causal == pytest.approx(48.25e9, rel=0.001)
    assert (lora.tokens_per_step, lora.steps) == (32 * 4096, 100)
    assert "padding: rows shorter than seq_length count as full" in lora.leaves_out


@pytest.mark.parametrize(
    ("strategy", "tp", "gigabytes"),
    [("fsdp2", 1, 64.24 / 8), ("fsdp2", 2, 64.24 / 8), ("ddp", 1, 64.24)],
)
def test_memory_is_shared_as_the_strategy_shares_it(strategy: str, tp: int, gigabytes: float) -> None:
    """Weights, gradients and two moments in bfloat16: eight bytes a weight."""
    assert _numbers(strategy=strategy, tp=tp).memory_gb == pytest.approx(gigabytes, rel=0.001)


def test_a_frozen_model_has_no_moments() -> None:
    assert _numbers(PEFT).memory_gb == pytest.approx((16.06 + 6 * 0.02097) / 8, rel=0.001)


@pytest.mark.parametrize("said", [True, "full", "selective", "off", False])
def test_recomputed_activations_are_work_for_the_hardware_only(said: str | bool) -> None:
    config = merged("automodel", [], {"distributed": {"activation_checkpointing": said}})
    found = size.numbers(config, MACHINE, LLAMA_3_8B).hardware
    assert found == pytest.approx(1 if said in ("off", False) else 4 / 3)


def test_a_model_that_the_yaml_makes_needs_no_other_file() -> None:
    shape = {key: value for key, value in LLAMA_3_8B.items() if key != "model_type"}
    made = {"_target_": "transformers.LlamaConfig", **shape}
    config = merged("automodel", [], {"model": {"config": made}})
    assert size.numbers(config, MACHINE).parameters == 8_030_261_248


@pytest.mark.parametrize("model", [{}, {"model_type": "mamba"}, {**LLAMA_3_8B, "hidden_size": "wide"}])
def test_an_unknown_model_has_no_size(model: dict[str, Any]) -> None:
    found = _numbers(model=model)
    assert (found.parameters, found.flops_per_token, found.memory_gb) == (None, None, None)
    assert found.leaves_out[0].startswith("size: ")


CHOICES: list[dict[str, Any]] = [
    {},
    {"match_all_linear": True},
    {"target_modules": "*_proj"},
    {"target_modules": ["q_proj", "*.v_proj"]},
    {"target_modules": [".*gate.*", "model.layers.*"]},
    {"exclude_modules": ["*.out_proj", "lm_head"]},
    {"exclude_modules": ["*.q_proj", "*.down_proj"]},
]
COUNT = """
import json, sys, torch
from nemo_automodel.components._peft.lora import PeftConfig, apply_lora_to_linear_modules
from transformers import AutoConfig, AutoModelForCausalLM
values, choices = json.loads(sys.argv[1])
kind = values.pop("model_type")
for choice in choices:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **values))
        apply_lora_to_linear_modules(model, PeftConfig(dim=4, **choice))
    print(sum(weight.numel() for weight in model.parameters() if weight.requires_grad))
"""


@pytest.mark.torch
def test_adapters_are_those_that_automodel_makes() -> None:
    """Every way to choose layers, in a small Qwen, made by Automodel's own function without memory."""
    values = {**SMALL, **FAMILIES["qwen3"], "tie_word_embeddings": False, "model_type": "qwen3"}
    done = real.run("automodel", "-c", COUNT, json.dumps([values, CHOICES]))
    assert done.returncode == 0, done.stderr
    shape = Shape.of(values)
    assert shape is not None
    tables = [merged("automodel", [], {"peft": {"dim": 4, **choice}}) for choice in CHOICES]
    ours = [adapters.count(config, shape) for config in tables]
    theirs = [int(line) for line in done.stdout.split()]
    assert [None if "layers" in str(choice) else n for choice, n in zip(CHOICES, theirs, strict=True)] == ours
    assert len(set(theirs)) == 4
