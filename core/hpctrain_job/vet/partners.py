"""Which nodes are measured together, in which round: pairs, so that what one of them spoils names it."""

from __future__ import annotations

SECONDS = (12.0, 14.0, 16.0)
"""How long a pair has in each round: longer in each, since a partner comes late who waited in vain before."""


def pairs(count: int) -> list[list[tuple[int, int]]]:
    """For each round the pairs of `count` nodes, by their numbers; nobody meets the same partner twice.

    The first stands still and the others go round it, as in a tournament; of an odd number one rests.
    """
    seats = list(range(count)) + ([-1] if count % 2 else [])
    rounds: list[list[tuple[int, int]]] = []
    for _ in range(min(len(SECONDS), len(seats) - 1)):
        half = len(seats) // 2
        met = zip(seats[:half], reversed(seats[half:]), strict=True)
        rounds.append([(min(pair), max(pair)) for pair in met if -1 not in pair])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


def of(number: int, count: int) -> list[tuple[int, int, int] | None]:
    """For each round the pair of this node with its place among the pairs, or None where it rests."""
    meetings: list[tuple[int, int, int] | None] = []
    for row in pairs(count):
        meeting = ((place, *pair) for place, pair in enumerate(row) if number in pair)
        meetings.append(next(meeting, None))
    return meetings
