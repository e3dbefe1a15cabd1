"""A line plot in the terminal: braille or ASCII, or a sentence in plain mode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hpctrain.ui.series import axis_words, extent, finite, place, sentence
from hpctrain.ui.text import clip, pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpctrain.ui.term import Term

    Span = tuple[float, float]

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille letter: four dots down, for its left and its right half."""


def plot(
    name: str,
    xs: Sequence[float],
    ys: Sequence[float],
    term: Term,
    *,
    width: int | None = None,
    height: int = 4,
    x_name: str = "step",
    x_end: float | None = None,
) -> list[str]:
    """`ys` over `xs` in `height` rows below a heading; `x_end` leaves room for what is to come.

    Each column shows the least and the greatest of its values, so that a spike is never lost.
    """
    points = finite(xs, ys)
    if term.plain or not points:
        return [term.text(sentence(name, xs, ys, x_name))]
    low, high = extent([y for _, y in points])
    top, bottom = axis_words((high, low), high - low)
    label = max(len(top), len(bottom))
    room = max(8, (width or min(term.width, 80)) - label - 2)
    x_low, x_high = extent([x for x, _ in points] + ([] if x_end is None else [x_end]), 1.0)
    across, down = (1, 1) if term.ascii else (2, 4)
    spans = _columns(xs, ys, room * across, x_low, x_high)
    rows = _rows(spans, low, high, height * down)
    body = _ascii(rows, height) if term.ascii else _braille(rows, height)
    names = [top, *[""] * (height - 2), bottom] if height > 1 else [top]
    tick, corner = ("|", "+") if term.ascii else ("┤", "└")
    lines = [f"{word:>{label}} {tick}{row}".rstrip() for word, row in zip(names, body, strict=True)]
    foot = _foot(points, x_name, x_low, x_high, room)
    return [
        term.paint("heading", term.fit(term.text(name))),
        *lines,
        f"{'':{label}} {corner}{foot}",
    ]


def _foot(points: Sequence[tuple[float, float]], x_name: str, x_low: float, x_high: float, room: int) -> str:
    start, end, reached = f" {x_name} {place(x_low)}", place(x_high), max(x for x, _ in points)
    if len(start) + len(end) >= room:
        start = f" {place(x_low)}"
    line = clip(start + f" {end}".rjust(room - len(start)), room)
    if reached < x_high:
        word = place(reached)
        at = round((reached - x_low) / (x_high - x_low) * (room - 1)) - len(word) // 2
        at = max(at, len(start) + 2)
        if at + len(word) + 2 <= room - len(end):
            line = pad(line[:at], at) + word + line[at + len(word) :]
    return line


def _columns(
    xs: Sequence[float], ys: Sequence[float], count: int, x_low: float, x_high: float
) -> list[Span | None]:
    """The least and greatest value in each column, with straight lines between distant points.

    The line breaks at a value that is not finite.
    """
    least: list[float] = [math.inf] * count
    most: list[float] = [-math.inf] * count
    scale = (count - 1) / (x_high - x_low)
    start, value = count, 0.0  # the point before; `count`: there is none
    for x, y in zip(xs, ys, strict=True):
        if not (math.isfinite(y) and math.isfinite(x)):
            start = count
            continue
        at = round((x - x_low) * scale)
        for between in range(start + 1, at) if at > start + 1 else ():
            least[between], most[between] = _widened(
                least[between], most[between], value + (y - value) * (between - start) / (at - start)
            )
        if y < least[at]:
            least[at] = y
        if y > most[at]:
            most[at] = y
        start, value = at, y
    return [(a, b) if a <= b else None for a, b in zip(least, most, strict=True)]


def _widened(low: float, high: float, value: float) -> Span:
    return min(low, value), max(high, value)


def _rows(spans: Sequence[Span | None], low: float, high: float, count: int) -> list[tuple[int, int] | None]:
    """First and last row of each column's span, from the top, stretched until it touches the column
    before."""
    height = high - low  # not its inverse, which is infinite where the height is the least float
    rows: list[tuple[int, int] | None] = []
    for span in spans:
        if span is None:
            rows.append(None)
            continue
        first, last = (round((high - value) / height * (count - 1)) for value in reversed(span))
        if rows and (before := rows[-1]):
            first = min(first, before[1] + 1)
            last = max(last, before[0] - 1)
        rows.append((first, last))
    return rows


def _braille(rows: Sequence[tuple[int, int] | None], height: int) -> list[str]:
    grid = [[0] * (len(rows) // 2) for _ in range(height)]
    for column, span in enumerate(rows):
        for row in range(span[0], span[1] + 1) if span else ():
            grid[row // 4][column // 2] |= _DOTS[column % 2][row % 4]
    return ["".join(chr(0x2800 + bits) if bits else " " for bits in line) for line in grid]


def _ascii(rows: Sequence[tuple[int, int] | None], height: int) -> list[str]:
    return [
        "".join("*" if span and span[0] <= row <= span[1] else " " for span in rows) for row in range(height)
    ]
