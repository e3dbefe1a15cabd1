"""What a plan says of size and time, with what each number leaves out."""

from __future__ import annotations

import math
from typing import Any

from hpctrain.model.cluster import Reference
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


def reference(plan: Plan) -> Reference | None:
    """What was measured on this machine with the model that is nearest in size; None where nothing was."""
    parameters = plan.train.numbers.parameters if plan.train else None
    if not parameters:
        return None
    size = math.log(parameters / 1e9)
    return min(plan.cluster.reference, key=lambda r: abs(math.log(r.parameters) - size), default=None)


def document(plan: Plan) -> dict[str, Any] | None:
    """The trainer's numbers, the tokens of the whole run, and the prediction."""
    if plan.train is None:
        return None
    numbers, predicted, measured = plan.train.numbers, seconds(plan), reference(plan)
    tokens = numbers.tokens_per_step * numbers.steps if numbers.tokens_per_step and numbers.steps else None
    return {
        **encode(numbers),
        "tokens": tokens,
        "seconds": round(predicted) if predicted is not None else None,
        "assumed_mfu": MFU if predicted is not None else None,
        "reference": encode(measured) if measured else None,
        "leaves_out": [*numbers.leaves_out, *(LEFT_OUT if predicted is not None else ())],
    }
