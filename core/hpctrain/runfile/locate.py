"""Give problems that name a key of the run file their place in it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hpctrain.errors import Problem
from hpctrain.runfile.layers import Merged


def located(problems: Iterable[Problem], merged: Merged) -> tuple[Problem, ...]:
    """Each problem whose `where` is a key that a layer said, with the span of that layer's file."""
    return tuple(_located(problem, merged) for problem in problems)


def _located(problem: Problem, merged: Merged) -> Problem:
    path = tuple(problem.where.split("."))
    tier = merged.owners.get(path) if problem.span is None and problem.where else None
    return problem if tier is None else attrs.evolve(problem, span=tier.span(path))
