"""The ranks of a group as a short text: those of a mesh are rows of equal steps."""

from __future__ import annotations

from collections.abc import Iterable

LARGEST = 1_000_000
"""No group has more ranks, whatever a file says."""


def pack(ranks: Iterable[int]) -> str:
    """`0:8:4` for eight ranks from 0 on, each four further; several rows with commas."""
    rows: list[list[int]] = []
    for rank in sorted(ranks):
        if rows and (len(rows[-1]) == 1 or rank - rows[-1][-1] == rows[-1][1] - rows[-1][0]):
            rows[-1].append(rank)
        else:
            rows.append([rank])
    return ",".join(f"{row[0]}:{len(row)}:{row[1] - row[0] if len(row) > 1 else 1}" for row in rows)


def unpack(text: str) -> tuple[int, ...]:
    """The ranks again; a ValueError where the text is none of ours."""
    ranks: list[int] = []
    for row in text.split(",") if text else ():
        start, count, step = map(int, row.split(":"))
        if not (0 < count <= LARGEST - len(ranks)):
            raise ValueError(f"a group of {count} ranks and more")
        ranks += [start + step * n for n in range(count)]
    return tuple(ranks)
