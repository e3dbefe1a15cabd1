"""Tables without borders, and labelled facts; both end as lines that fit the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.ui.text import ABSENT, cells, clip, pad, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hpctrain.ui.term import Term

    Cell = str | tuple[str, str] | None
    """Text, a style and text, or None where nothing applies."""

GUTTER = "  "
_WIDEST = 72
"""In a pipe nothing is clipped: a longer cell moves the rest of its row, and not the rows of others."""

_SHORTEST = 8
"""A clipped column keeps at least this much; narrower, the rows become records."""


class Column:
    """A heading and how its cells behave.

    `right` is for numbers, which are never clipped. Where width is short, columns leave by `drop`,
    the highest first; 0 stays. `style` colours the cells that bring no style of their own.
    """

    __slots__ = ("drop", "name", "right", "style")

    def __init__(self, name: str, *, right: bool = False, drop: int = 0, style: str = "") -> None:
        self.name = name
        self.right = right
        self.drop = drop
        self.style = style


class Table:
    """Rows under headings: `Table(Column("STEP"), Column("SIZE", right=True))`."""

    def __init__(self, *columns: Column) -> None:
        self.columns = columns
        self._rows: list[tuple[Cell, ...]] = []

    def row(self, *row: Cell) -> None:
        """Add a row: one cell for each column."""
        if len(row) != len(self.columns):
            raise ValueError(f"{len(self.columns)} cells are needed, got {len(row)}")
        self._rows.append(row)

    def lines(self, term: Term) -> list[str]:
        """The table as lines for `term`: whole, without some columns, clipped, or as records."""
        grid = [[_styled(cell, term) for cell in row] for row in self._rows]
        if term.plain:
            return _records(self.columns, grid, term)
        visible = list(range(len(self.columns)))
        widths = [
            max(cells(text) for text in (column.name, *(row[at][1] for row in grid)))
            for at, column in enumerate(self.columns)
        ]
        if term.clips:
            self._drop(visible, widths, term.width)
            self._shrink(visible, widths, term.width)
            if _total(visible, widths) > term.width:
                return _records(self.columns, grid, term)
        else:
            widths = [min(width, _WIDEST) for width in widths]
        heading = [("heading", column.name) for column in self.columns]
        return [self._line(row, visible, widths, term) for row in (heading, *grid)]

    def _drop(self, visible: list[int], widths: Sequence[int], width: int) -> None:
        leaving = sorted((at for at in visible if self.columns[at].drop), key=self._order)
        while leaving and _total(visible, widths) > width:
            visible.remove(leaving.pop())

    def _order(self, at: int) -> int:
        return self.columns[at].drop

    def _shrink(self, visible: Sequence[int], widths: list[int], width: int) -> None:
        while _total(visible, widths) > width:
            texts = [at for at in visible if not self.columns[at].right]
            widest = max(texts, key=widths.__getitem__, default=None)
            if widest is None:
                return
            column = self.columns[widest]
            least = max(_SHORTEST, cells(column.name))
            if widths[widest] <= least:
                return
            widths[widest] -= 1  # the widest of now: long columns end equally wide

    def _line(
        self, row: Sequence[tuple[str, str]], visible: Sequence[int], widths: Sequence[int], term: Term
    ) -> str:
        parts = []
        for place, at in enumerate(visible, start=1):
            column = self.columns[at]
            style, text = row[at]
            text = clip(text, widths[at], term.mark) if term.clips else text
            space = " " * (widths[at] - cells(text))
            painted = term.paint(style or column.style, text)
            last = place == len(visible)
            parts.append(space + painted if column.right else painted if last else painted + space)
        return GUTTER.join(parts).rstrip()


def _styled(cell: Cell, term: Term) -> tuple[str, str]:
    style, text = ("", ABSENT) if cell is None else ("", cell) if isinstance(cell, str) else cell
    return style, term.text(text)


def _total(visible: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[at] for at in visible) + len(GUTTER) * (len(visible) - 1)


def _records(columns: Sequence[Column], grid: Sequence[Sequence[tuple[str, str]]], term: Term) -> list[str]:
    lines: list[str] = []
    for row in grid:
        pairs = [(column.name, cell) for column, cell in zip(columns, row, strict=True) if cell[1]]
        lines += [""] if lines else []
        if term.plain:
            pairs = [(name.lower(), cell) for name, cell in pairs]
        lines += facts(pairs, term)
    return lines


def facts(pairs: Iterable[tuple[str, Cell]], term: Term) -> list[str]:
    """`label  value` lines with the values under each other; long values go on below themselves.

    In plain mode each is `label: value`.
    """
    rows = [(term.text(label), *_styled(value, term)) for label, value in pairs]
    room = max((cells(label) for label, _, _ in rows), default=0) + len(GUTTER)
    lines = []
    for label, style, text in rows:
        start = f"{label}: " if term.plain else pad(label, room)
        below = "" if term.plain else " " * room
        width = max(_SHORTEST, term.width - cells(start))
        parts = wrap(text, width) if term.clips and not term.plain else [text]
        for part in parts:
            lines.append((start + term.paint(style, part)).rstrip())
            start = below
    return lines
