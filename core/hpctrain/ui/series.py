"""A series of measured values: what its plot says in words, its extent, and round axis marks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hpctrain.ui.text import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def finite(xs: Iterable[float], ys: Iterable[float]) -> list[tuple[float, float]]:
    """The points that can be drawn."""
    return [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and math.isfinite(y)]


def sentence(name: str, xs: Sequence[float], ys: Sequence[float], x_name: str = "step") -> str:
    """What a plot shows, for those who do not see it: first, last and lowest value."""
    points = finite(xs, ys)
    if not points:
        return f"{name}: no values yet"
    lost = len(ys) - len(points)
    lost_note = f", {lost} not finite" if lost else ""
    values = [y for _, y in points]
    lowest = min(values)
    at = next(x for x, y in points if y == lowest)
    if len(points) == 1:
        return f"{name}: {number(lowest)} at {x_name} {place(at)}{lost_note}"
    first, last, low = axis_words((values[0], values[-1], lowest), max(values) - lowest)
    return f"{name}: from {first} to {last}, lowest {low} at {x_name} {place(at)}{lost_note}"


def place(x: float) -> str:
    """An x value: steps are whole."""
    return f"{x:,.0f}" if x == int(x) else number(x)


def axis_words(values: Sequence[float], span: float) -> list[str]:
    """`values` with as many digits as tell them apart on an axis of `span`."""
    largest = max(map(abs, values))
    if span <= 0 or largest >= 1e9 or largest < 1e-3:
        return [number(value, 3) for value in values]
    places = 2 - math.floor(math.log10(span))
    return [f"{value:,.{min(9, max(0, places))}f}" for value in values]


def extent(values: Sequence[float], apart: float = 0.0) -> tuple[float, float]:
    """The least and the greatest value, pulled apart where they are one."""
    low, high = min(values), max(values)
    if low < high:
        return low, high
    room = max(apart or abs(low) * 0.05 or 1.0, abs(low) * 1e-9)  # which a float can tell from the number
    return low - room, high + room


def round_marks(low: float, high: float, about: int, whole: bool = False) -> list[float]:
    """About `about` round numbers between `low` and `high`: 1, 2, 2.5 or 5 times a power of ten."""
    raw = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    factors = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = next(f * power for f in factors if f * power >= raw * 0.999)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = 12 - math.floor(math.log10(step))  # 3 * 0.1 is to be 0.3
    return [round(index * step, digits) + 0.0 for index in range(first, last + 1)]  # -0.0 is 0


def mark_words(marks: Sequence[float]) -> list[str]:
    """Axis marks in full, without the noughts that they all end in."""
    words = axis_words(marks, marks[-1] - marks[0]) if len(marks) > 1 else [*map(number, marks)]
    while all("." in word and word.endswith("0") for word in words):
        words = [word[:-1].rstrip(".") if word[-2] == "." else word[:-1] for word in words]
    return words
