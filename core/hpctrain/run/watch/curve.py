"""A series of any length in little memory: of neighbours the least and the greatest, so no spike is lost."""

from __future__ import annotations

Point = tuple[int, float]

BINS = 1000
"""As many groups of neighbours are kept, each of the same number of points."""


class Curve:
    """Points whose steps rise; `cut` takes those away that another attempt trains again."""

    def __init__(self) -> None:
        self._bins: list[tuple[Point, Point]] = []
        """Least and greatest point of each group."""
        self._size = 1
        self._open = 0
        """How many points the last group has."""

    def add(self, step: int, value: float) -> None:
        """Add the next point."""
        point = (step, value)
        if not self._bins or self._open == self._size:
            if len(self._bins) == BINS:
                self._halve()
            self._bins.append((point, point))
            self._open = 1
            return
        self._bins[-1] = _merged(self._bins[-1], (point, point))
        self._open += 1

    def cut(self, step: int) -> None:
        """Forget the points from this step on."""
        while self._bins and min(self._bins[-1])[0] >= step:
            self._bins.pop()
        if self._bins and max(self._bins[-1])[0] >= step:
            earlier = min(self._bins[-1])
            self._bins[-1] = (earlier, earlier)
        self._open = self._size

    @property
    def points(self) -> tuple[Point, ...]:
        """What is left of the series, by step."""
        return tuple(point for pair in self._bins for point in sorted(set(pair)))

    def _halve(self) -> None:
        pairs = zip(self._bins[::2], self._bins[1::2], strict=True)
        self._bins = [_merged(left, right) for left, right in pairs]
        self._size *= 2


def _merged(left: tuple[Point, Point], right: tuple[Point, Point]) -> tuple[Point, Point]:
    """The extremes of two groups; of equal values the earlier least and the later greatest."""
    low = left[0] if left[0][1] <= right[0][1] else right[0]
    high = right[1] if right[1][1] >= left[1][1] else left[1]
    return low, high
