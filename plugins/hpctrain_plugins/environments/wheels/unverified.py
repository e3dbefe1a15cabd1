"""What a plan says of wheels that are pinned by version alone."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.plugin import Pin, Problem
from hpctrain_plugins.environments.wheels.lists import UNVERIFIED


def problems(pins: Iterable[Pin]) -> list[Problem]:
    """One warning with every such pin."""
    unverified_pins = [p for p in pins if p.kind == "pypi" and UNVERIFIED in p.value.split()]
    if not unverified_pins:
        return []
    listing = ", ".join(f"{p.name} {p.value.split()[0]}" for p in unverified_pins)
    return [
        Problem(
            code="hash-unverified",
            message=f"hash not verified here: {listing}",
            notes=(
                "their index was out of reach when they were locked; the version is pinned, the file is not",
            ),
            hint="hpctrain lock      (where the index can be reached)",
            where="environment",
            fatal=False,
        )
    ]
