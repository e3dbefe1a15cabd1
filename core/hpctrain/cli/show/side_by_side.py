"""What differs between clusters or runs: beside each other where there is room, else one below another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hpctrain.ui.table import GUTTER, Column, Table, facts
from hpctrain.ui.text import ABSENT, cells

if TYPE_CHECKING:
    from hpctrain.ui.term import Term

Row = tuple[str, Sequence[str]]
LONG = 60
"""Cells of a value that is named and not shown where many are compared: a command."""


def lines(
    headings: Sequence[str],
    rows: Sequence[Row],
    term: Term,
    equal_count: int | None = None,
    *,
    is_short: bool = False,
) -> Iterator[str]:
    """A line for each thing that differs, a column for each of `headings`; what is too long for its column
    stands below the table, value by value, or `is_short`: by who has the same. `equal_count` are the same."""
    tabled = [row for row in rows if _has_room(headings, row, rows, term)]
    table = Table(Column("", style="name"), *(Column(heading) for heading in headings))
    for name, values in tabled:
        table.row(name, *values)
    yield from table.lines(term)
    below = [row for row in rows if row not in tabled]  # a few letters of it would say nothing
    if is_short:
        yield from _short(headings, below, term)
        below = []
    for name, values in below:
        yield term.paint("name", term.text(name))
        yield from (f"  {line}" for line in facts(_owners(headings, values), term.narrowed(term.width - 2)))
    if equal_count is not None:
        yield from facts([("same", f"{equal_count} more rows")], term)


def _short(headings: Sequence[str], rows: Sequence[Row], term: Term) -> Iterator[str]:
    """Short values in one text, then who has the same of what is long: `alps, olivia | frontier`."""
    narrow, names = term.narrowed(term.width - 2), dict[str, list[str]]()
    for name, values in rows:
        if max(map(cells, values)) > LONG:
            names.setdefault(_shared(headings, values), []).append(name)
        else:
            owned = (f"{who}: {value}" for who, value in _owners(headings, values) if value != ABSENT)
            yield from _titled(name, "; ".join(owned), narrow)
    for shared, labels in names.items():
        yield from _titled(f"longer: {shared}", ", ".join(labels), narrow)


def _titled(title: str, text: str, narrow: Term) -> Iterator[str]:
    yield narrow.paint("name", narrow.text(title))
    yield from (f"  {line}" for line in narrow.wrapped(text))


def _shared(headings: Sequence[str], values: Sequence[str]) -> str:
    """`alps, olivia | frontier`: those that are not named have nothing."""
    owners = [
        [heading for heading, cell in zip(headings, values, strict=True) if cell == value]
        for value in dict.fromkeys(values)
        if value != ABSENT
    ]
    return "each its own" if len(owners) == len(headings) else " | ".join(map(", ".join, owners))


def _has_room(headings: Sequence[str], row: Row, rows: Sequence[Row], term: Term) -> bool:
    """Whether each value fits into an equal share of the width."""
    if term.plain or not term.clips:
        return True
    room = term.width - max(cells(name) for name, _ in rows)
    share = room // len(headings) - len(GUTTER)
    return all(cells(text) <= share for text in row[1])


def _owners(headings: Sequence[str], values: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each value once, with all that have it: `alps, olivia  cxi`; those that have none last."""
    for value in sorted(dict.fromkeys(values), key=lambda value: value == ABSENT):
        names = [heading for heading, cell in zip(headings, values, strict=True) if cell == value]
        yield "others" if value == ABSENT and len(names) > 1 else ", ".join(names), value
