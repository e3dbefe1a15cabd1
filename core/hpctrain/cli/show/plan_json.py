"""The plan as one JSON document."""

from __future__ import annotations

from typing import Any

from hpctrain.errors import HpctrainError
from hpctrain.model.plan import Plan, Survey
from hpctrain.plan.encode import encode
from hpctrain.plan.predict import document as numbers
from hpctrain.ui.problem import problem_json


def document(plan: Plan, survey: Survey | None) -> dict[str, Any]:
    """`{digest, plan, survey}`; the plan without the cluster's facts, which are installed anyway."""
    body = {
        "run": encode(plan.run),
        "cluster": plan.cluster.name,
        "pins": encode(plan.pins),
        "steps": encode(plan.steps),
        "numbers": numbers(plan),
        "problems": [problem_json(p) for p in plan.problems],
        "plugins": list(plan.plugins),
    }
    return {"digest": plan.digest, "plan": body, "survey": encode(survey) if survey else None}


def refusal(error: HpctrainError) -> dict[str, Any]:
    """A cluster that refuses, in its row of `plans`."""
    return {"digest": None, "problems": [problem_json(p) for p in error.problems]}
