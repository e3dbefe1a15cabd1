"""What a plan says of size and time, with what each number leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from hpctrain.model.cluster import Reference
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.model.train import Numbers
from hpctrain.plan import chain
from hpctrain.plan.encode import encode

MFU = 0.3
"""The share of the peak that a prediction assumes: what well-kept runs reach with bfloat16."""
SMALL = 1e9
"""Parameters below which a prediction is a lower bound: matrices are too small for the peak. The
tutorial of Alps says 10 minutes for its 109 M parameters, which at this share of the peak would take half a
minute."""
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


def node_hours(plan: Plan, seconds: float) -> float:
    """What so many seconds of training cost."""
    step = plan.step_named(chain.TRAIN)
    return seconds * (step.step.launch.nodes if step else 1) / 3600


def jobs(plan: Plan, seconds: float) -> int:
    """How many jobs so many seconds of training are; one that is queued again stays one."""
    time, links = plan.run.resources.time, chain.of(plan)
    if links is not None and links.requeue:
        return 1
    return max(1, math.ceil(seconds / time.seconds)) if time else 1


@frozen
class Cost:
    """What jobs take from the account at most."""

    jobs: int
    node_hours: float


def cost(plan: Plan, steps: Iterable[PlannedStep]) -> Cost:
    """Of those of `steps` that are jobs, each as long as it may be, a chain with all its attempts."""
    links = chain.of(plan)
    times = {chain.TRAIN: links.attempts} if links else {}
    queued = [(item, times.get(item.name, 1)) for item in steps if not item.here]
    return Cost(
        jobs=len(queued) if links and links.requeue else sum(count for _, count in queued),
        node_hours=sum(i.step.minutes * i.step.launch.job_nodes * count for i, count in queued) / 60,
    )


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
        "node_hours": round(node_hours(plan, predicted), 3) if predicted is not None else None,
        "most_node_hours": round(cost(plan, plan.steps).node_hours, 3),
        "assumed_mfu": MFU if predicted is not None else None,
        "reference": encode(measured) if measured else None,
        "leaves_out": [*numbers.leaves_out, *(LEFT_OUT if predicted is not None else ())],
    }
