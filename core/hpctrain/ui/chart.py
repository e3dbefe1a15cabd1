"""A chart of a page: drawn without scripts at any width, with the points that a script needs to redraw it.

The curves are in an SVG that is stretched to the page; numbers and words stand beside it, so they never are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hpctrain.ui.markup import escaped
from hpctrain.ui.picture import Curve
from hpctrain.ui.series import extent, finite, mark_words, place, round_marks, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    Point = tuple[float, float]

WIDTH, HEIGHT = 1000, 200
"""The SVG's own coordinates; the page stretches the width."""
POINTS = 2000
"""Bins of a long series that the page holds: the least and the greatest value of each, where they were."""
DRAWN = 500
"""Bins that are drawn before a script looks at them."""
TREND = 250
"""Bins whose means show where a noisy series goes."""
COLORS = 8
"""Looks of curves before they repeat."""


def thinned(points: Sequence[Point], bins: int) -> list[Point]:
    """At most two points a bin, its least and its greatest in their order; the first and last of all."""
    if len(points) <= 2 * bins:
        return list(points)
    size = -(-len(points) // bins)
    extremes = [points[0]]
    for start in range(0, len(points), size):
        part = points[start : start + size]
        values = [y for _, y in part]
        places = sorted({values.index(min(values)), values.index(max(values))})
        extremes += [part[at] for at in places if part[at] != extremes[-1]]
    return extremes if extremes[-1] == points[-1] else [*extremes, points[-1]]


def trend(points: Sequence[Point], bins: int = TREND) -> list[Point]:
    """Means of neighbouring points; none where there are too few to hide one another."""
    if len(points) <= 2 * bins:
        return []
    size = -(-len(points) // bins)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return [(part[len(part) // 2][0], math.fsum(y for _, y in part) / len(part)) for part in parts]


class Chart:
    """Curves over one pair of axes; `marks` are places on the x axis with a word: where an attempt began."""

    def __init__(self, title: str, curves: Sequence[Curve], marks: Sequence[tuple[float, str]] = ()) -> None:
        self.title = title
        self.curves = curves
        self.marks = marks
        self.says = "; ".join(sentence(curve.name, curve.xs, curve.ys) for curve in curves)
        """What it shows, in words."""
        share = max(1, len(curves))
        self._all = [finite(curve.xs, curve.ys) for curve in curves]
        self._points = [thinned(points, max(100, POINTS // share)) for points in self._all]
        self._trends = [trend(points, max(50, TREND // share)) for points in self._all]
        self._drawn = [thinned(points, max(60, DRAWN // share)) for points in self._points]
        flat = [point for points in self._points for point in points]
        self._x = extent([x for x, _ in flat] or [0.0], 1.0)
        low, high = extent([y for _, y in flat] or [0.0])
        room = (high - low) * 0.04
        self._y = (max(0.0, low - room) if low >= 0 else low - room, high + room)

    def data(self) -> dict[str, object]:
        """What a script needs to draw it again: each curve's points and trend."""
        return {
            "marks": [[_short(x), word] for x, word in self.marks],
            "curves": [
                {
                    "name": curve.name,
                    "x": [_short(x, 12) for x, _ in points],
                    "y": [_short(y) for _, y in points],
                    "t": [[_short(x, 12), _short(y)] for x, y in means],
                }
                for curve, points, means in zip(self.curves, self._points, self._trends, strict=True)
            ],
        }

    def html(self, at: int) -> str:
        """The figure; `at` is its place among the page's charts."""
        parts = [
            f'<figure class="chart" data-at="{at}"><figcaption><b>{escaped(self.title)}</b> ',
            f'<output class="reading">{escaped(self._caption)}</output></figcaption><div class="frame">',
            self._y_axis(),
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" ',
            f'aria-label="{escaped(self.says)}"><g class="grid">{self._grid()}</g>',
            *(f'<path class="mark" d="M{self._across(x)} 0V{HEIGHT}"/>' for x, _ in self.marks),
            *(self._curve(at) for at in range(len(self.curves))),
            "</svg>",
            self._x_axis(),
            "</div></figure>",
        ]
        return "".join(parts)

    @property
    def _caption(self) -> str:
        """The same below the title; of several curves it would be too long to read, and there is a legend."""
        return self.says.partition(": ")[2] if len(self.curves) == 1 else ""

    def _across(self, x: float) -> str:
        low, high = self._x
        return f"{(x - low) / (high - low) * WIDTH:.1f}".removesuffix(".0")

    def _down(self, y: float) -> str:
        low, high = self._y
        return f"{(high - y) / (high - low) * HEIGHT:.1f}".removesuffix(".0")

    def _y_marks(self) -> list[tuple[float, str]]:
        marks = round_marks(*self._y, 4)
        words = mark_words(marks)
        return list(zip(marks, words, strict=True))

    def _grid(self) -> str:
        return "".join(f'<path d="M0 {self._down(y)}H{WIDTH}"/>' for y, _ in self._y_marks())

    def _y_axis(self) -> str:
        words = "".join(
            f'<text x="50" y="{float(self._down(y)) + 4:.0f}">{word}</text>' for y, word in self._y_marks()
        )
        return f'<svg class="ys" aria-hidden="true">{words}</svg>'

    def _x_axis(self) -> str:
        whole = all(x == int(x) for points in self._points for x, _ in points[:50])
        words = []
        for x in round_marks(*self._x, 4, whole=whole):
            share = float(self._across(x)) / WIDTH * 100
            words.append(f'<text x="{share:.1f}%" y="14">{place(x)}</text>')
        return f'<svg class="xs" aria-hidden="true">{"".join(words)}</svg>'

    def _curve(self, at: int) -> str:
        if not self._points[at]:
            return ""
        style = f"line c{at % COLORS}"
        means = self._trends[at]
        kind = " dot" if len(self._drawn[at]) == 1 else " noisy" if means else ""
        values = f'<path class="{style}{kind}" d="{self._path(self._drawn[at])}"/>'
        return values + (f'<path class="{style} trend" d="{self._path(means)}"/>' if means else "")

    def _path(self, points: Sequence[Point]) -> str:
        if len(points) == 1:  # a line with round ends that leads nowhere is a dot
            points = [points[0], points[0]]
        return "M" + "L".join(f"{self._across(x)} {self._down(y)}" for x, y in points)


def _short(value: float, digits: int = 6) -> float | int:
    """As many digits as a picture shows; whole numbers as such."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) else rounded
