"""What differs between clusters or runs: beside each other where there is room, else one below another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hpctrain.ui.table import GUTTER, Column, Table, facts
from hpctrain.ui.text import ABSENT, cells

if TYPE_CHECKING:
    from hpctrain.ui.term import Term

Row = tuple[str, Sequence[str]]


def lines(
    headings: Sequence[str], rows: Sequence[Row], term: Term, equal_count: int | None = None
) -> Iterator[str]:
    """A line for each thing that differs, a column for each of `headings`; what is too long for its column
    stands below the table, value by value. `equal_count` things are the same."""
    tabled = [row for row in rows if _has_room(headings, row, rows, term)]
    table = Table(Column("", style="name"), *(Column(heading) for heading in headings))
    for name, values in tabled:
        table.row(name, *values)
    yield from table.lines(term)
    for name, values in (row for row in rows if row not in tabled):  # a few letters of it would say nothing
        yield term.paint("name", term.text(name))
        yield from (f"  {line}" for line in facts(_owners(headings, values), term.narrowed(term.width - 2)))
    if equal_count is not None:
        yield from facts([("same", f"{equal_count} more rows")], term)


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
