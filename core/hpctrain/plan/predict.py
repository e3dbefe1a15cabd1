"""What a plan says of size and time, with what each number leaves out."""

from __future__ import annotations

from typing import Any

from hpctrain.model.plan import Plan
from hpctrain.model.train import Numbers
from hpctrain.plan.encode import encode

MFU = 0.3
"""The share of the peak that a prediction assumes: what well-kept runs reach with bfloat16."""
LEFT_OUT = ("time: start, evaluations, checkpoints and waiting",)


def seconds(plan: Plan) -> float | None:
    """Training at an assumed share of the peak; None where something of it is not known."""
    numbers = plan.train.numbers if plan.train else Numbers()
    step, peak = plan.step_named("train"), plan.cluster.hardware.peak_tflops
    if not (numbers.flops_per_token and numbers.tokens_per_step and numbers.steps and step and peak):
        return None
    launch = step.step.launch
    gpus = max(1, launch.nodes * launch.gpus_per_node)
    return numbers.flops_per_token * numbers.tokens_per_step * numbers.steps / (gpus * peak * 1e12 * MFU)


def document(plan: Plan) -> dict[str, Any] | None:
    """The trainer's numbers, the tokens of the whole run, and the prediction."""
    if plan.train is None:
        return None
    numbers, predicted = plan.train.numbers, seconds(plan)
    tokens = numbers.tokens_per_step * numbers.steps if numbers.tokens_per_step and numbers.steps else None
    return {
        **encode(numbers),
        "tokens": tokens,
        "seconds": round(predicted) if predicted is not None else None,
        "assumed_mfu": MFU if predicted is not None else None,
        "leaves_out": [*numbers.leaves_out, *(LEFT_OUT if predicted is not None else ())],
    }
