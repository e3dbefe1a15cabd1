"""What a plan says of wheels that are pinned by version alone."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.errors import Problem
from hpctrain.model.step import Pin
from hpctrain_plugins.environments.wheels.lists import UNVERIFIED


def problems(pins: Iterable[Pin]) -> list[Problem]:
    """One warning with every such pin."""
    found = [p for p in pins if p.kind == "pypi" and UNVERIFIED in p.value.split()]
    if not found:
        return []
    said = ", ".join(f"{p.name} {p.value.split()[0]}" for p in found)
    return [
        Problem(
            code="hash-unverified",
            message=f"hash not verified here: {said}",
            notes=(
                "their index was out of reach when they were locked; the version is pinned, the file is not",
            ),
            hint="hpctrain lock      (where the index can be reached)",
            where="environment",
            fatal=False,
        )
    ]
