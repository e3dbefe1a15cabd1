"""Who takes part in a collective, and where they meet."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = 20.0


@dataclass(frozen=True)
class Place:
    """One process of several."""

    rank: int
    world: int
    head: str
    """The node of rank 0, where all of them meet."""
    port: int
    seconds: float = SECONDS
    """How long anything may take: who is late counts as lost."""
