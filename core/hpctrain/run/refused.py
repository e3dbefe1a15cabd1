"""What a step says of the run file: lines that people read in its log become problems again.

::

    error[data-field]: the evaluation data has no field nn_husnrm
      where: train.trl.eval_target_field
      note: /cluster/…/hub-3f2a has: nb, nn_husnorm
      hint: eval_target_field = "nn_husnorm"
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpctrain.errors import Problem

CODE = 78
"""The exit code of such a step, in jobs and here (EX_CONFIG)."""

_FIRST = re.compile(r"error(?:\[[a-z-]+\])?: (?P<message>.+)")
_DETAIL = re.compile(r"  (?P<word>where|note|hint): (?P<text>.+)")


def problems(lines: Iterable[str]) -> tuple[Problem, ...]:
    """Each error of a log's lines."""
    errors: list[tuple[str, dict[str, list[str]]]] = []
    for line in lines:
        if first := _FIRST.match(line):
            errors.append((first["message"], {"where": [], "note": [], "hint": []}))
        elif errors and (detail := _DETAIL.match(line)):
            errors[-1][1][detail["word"]].append(detail["text"])
    return tuple(
        Problem(
            code="step-refused",
            message=message,
            where="".join(details["where"][-1:]),
            hint="\n".join(details["hint"]),
            notes=tuple(details["note"]),
        )
        for message, details in errors
    )
