"""A chart as one self-contained SVG: no script, no request, and its numbers inside."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from hpctrain.ui.series import extent, finite, mark_words, place, round_marks, sentence
from hpctrain.ui.text import clean, number

if TYPE_CHECKING:
    from collections.abc import Sequence

BINS = 1500
EXACT = 500
"""A long series is drawn as this many bins, least to greatest, and its last points as they are."""

MOST = 4
"""Curves in one picture."""
WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 72, 84, 64, 50
# Okabe and Ito's colours, darker or lighter where the paper needs it, told apart by dashes too.
# Written out, not as CSS variables: several converters from SVG do not know those.
_LIGHT = ("#1b1f24", "#57606a", "#dfe3e8", "#ffffff", "#0067a6", "#b34a00", "#007a58", "#a3477d")
_DARK = ("#e6e9ed", "#a3adb8", "#333b45", "#14181d", "#56b4e9", "#f0a04b", "#35c79a", "#e396c4")


def _colors(ink: str, soft: str, grid: str, paper: str, *curves: str) -> str:
    rules = [
        f".hpc-chart .paper{{fill:{paper}}}",
        f".hpc-chart text{{fill:{soft}}}",
        f".hpc-chart .name{{fill:{ink}}}",
        f".hpc-chart .grid{{stroke:{grid}}}",
        f".hpc-chart .axis{{stroke:{soft}}}",
    ]
    for at, color in enumerate(curves):
        rules.append(f".hpc-chart .s{at}{{stroke:{color}}}.hpc-chart .f{at}{{fill:{color}}}")
    return "\n".join(rules)


STYLE = f"""
.hpc-chart{{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
font-size:13px}}
.hpc-chart .name{{font-size:17px;font-weight:600}}
.hpc-chart .line{{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}}
.hpc-chart .end{{font-weight:600}}
.hpc-chart .s1{{stroke-dasharray:7 4}}
.hpc-chart .s2{{stroke-dasharray:2 4}}
.hpc-chart .s3{{stroke-dasharray:9 3 2 3}}
.hpc-chart .band{{stroke-width:1;stroke-dasharray:none;opacity:.35}}
.hpc-chart .thin{{stroke-width:.7;stroke-dasharray:none}}
{_colors(*_LIGHT)}
@media (prefers-color-scheme:dark){{
{_colors(*_DARK)}
}}
"""


class Curve:
    """One line of a chart: its name and its points."""

    __slots__ = ("name", "xs", "ys")

    def __init__(self, name: str, xs: Sequence[float], ys: Sequence[float]) -> None:
        self.name = name
        self.xs = xs
        self.ys = ys


class _Bin:
    """Neighbouring points of a long series: where they lie, their extent and their mean."""

    __slots__ = ("high", "low", "mean", "x")

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        values = [y for _, y in points]
        self.x = points[len(points) // 2][0]
        self.low, self.high = min(values), max(values)
        self.mean = float(f"{math.fsum(values) / len(values):.6g}")  # only drawn, so kept short


class _Drawn:
    """A curve as it is drawn: bins first, then exact points."""

    def __init__(self, curve: Curve) -> None:
        self.name = clean(curve.name)
        points = finite(curve.xs, curve.ys)
        early = points[:-EXACT] if len(points) > BINS + EXACT else []
        self.exact = points[len(early) :]
        bin_size = -(-len(early) // BINS) or 1
        self.bins = [_Bin(early[at : at + bin_size]) for at in range(0, len(early), bin_size)]

    @property
    def data(self) -> dict[str, object]:
        bins = [[b.x, b.low, b.high, b.mean] for b in self.bins]
        return {"name": self.name, "bins": bins, "points": [list(p) for p in self.exact]}

    @property
    def xs(self) -> list[float]:
        return [b.x for b in self.bins] + [x for x, _ in self.exact]

    @property
    def ys(self) -> list[float]:
        return [y for b in self.bins for y in (b.low, b.high)] + [y for _, y in self.exact]


class _Frame:
    """From values to places on the paper."""

    def __init__(self, drawn: Sequence[_Drawn]) -> None:
        self.x_low, self.x_high = extent([x for d in drawn for x in d.xs] or [0.0], 1.0)
        self.whole = all(x == int(x) for d in drawn for x in d.xs)
        low, high = extent([y for d in drawn for y in d.ys] or [0.0])
        room = (high - low) * 0.04
        # A value that never goes below zero gets no room there.
        self.y_low = max(0.0, low - room) if low >= 0 else low - room
        self.y_high = high + room

    def x(self, value: float) -> float:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.x(x):.2f} {self.y(y):.2f}" for x, y in points)


def picture(
    title: str,
    curves: Sequence[Curve],
    *,
    unit: str = "",
    x_name: str = "step",
    ident: str = "chart",
) -> str:
    """Draw up to four curves over one pair of axes, as the text of an SVG file.

    Its `<metadata>` holds as JSON what was drawn: for each curve `points` [x, y], all of a series
    of up to 2,000, and before them for a longer one `bins` [x, least, greatest, mean]. `ident`
    keeps several pictures in one page apart.
    """
    if not 1 <= len(curves) <= MOST:
        raise ValueError(f"a picture has one to four curves, got {len(curves)}")
    drawn = [_Drawn(curve) for curve in curves]
    frame = _Frame(drawn)
    description = "; ".join(sentence(c.name, c.xs, c.ys, x_name) for c in curves)
    ident = _escaped(ident)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        f' class="hpc-chart" role="img" aria-labelledby="{ident}-title {ident}-desc">',
        f'<title id="{ident}-title">{_escaped(title)}</title>',
        f'<desc id="{ident}-desc">{_escaped(description)}</desc>',
        f"<metadata>{_json(x_name, drawn)}</metadata>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        _text(LEFT, 28, title, "start", "name"),
        _text(LEFT, 49, unit, "start"),
        *_axes(frame, x_name),
        *(part for at, drawn_curve in enumerate(drawn) for part in _curve(drawn_curve, frame, at)),
        *_ends(drawn, frame),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _json(x_name: str, drawn: Sequence[_Drawn]) -> str:
    data = json.dumps({"x": x_name, "curves": [d.data for d in drawn]}, separators=(",", ":"))
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _axes(frame: _Frame, x_name: str) -> list[str]:
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    marks = round_marks(frame.y_low, frame.y_high, 5)
    parts = []
    for mark, word in zip(marks, mark_words(marks), strict=True):
        y = frame.y(mark)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(_text(LEFT - 10, y + 4.5, word, "end"))
    for mark in round_marks(frame.x_low, frame.x_high, 6, whole=frame.whole):
        x = frame.x(mark)
        parts.append(f'<path class="axis" d="M{x:.1f} {floor}v5"/>')
        parts.append(_text(x, floor + 20, place(mark), "middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {floor}H{right}"/>')
    parts.append(_text((LEFT + right) / 2, HEIGHT - 10, x_name, "middle"))
    return parts


def _curve(drawn_curve: _Drawn, frame: _Frame, at: int) -> list[str]:
    if not drawn_curve.exact:
        return []
    parts = []
    thick, thin = drawn_curve.exact, []
    if drawn_curve.bins:
        edge = [(b.x, b.high) for b in drawn_curve.bins] + [(b.x, b.low) for b in reversed(drawn_curve.bins)]
        parts.append(f'<path class="band s{at} f{at}" d="{frame.path(edge)}Z"/>')
        thick, thin = [(b.x, b.mean) for b in drawn_curve.bins], drawn_curve.exact
    for style, points in (("line", thick), ("line thin", thin)):
        if points:
            parts.append(f'<path class="{style} s{at}" d="{frame.path(points)}"/>')
    x, y = drawn_curve.exact[-1]
    parts.append(f'<circle class="f{at}" cx="{frame.x(x):.2f}" cy="{frame.y(y):.2f}" r="3.5"/>')
    return parts


def _ends(drawn: Sequence[_Drawn], frame: _Frame) -> list[str]:
    """The last value beside the end of each curve, pushed apart; with names where several are."""
    ends = sorted((frame.y(d.exact[-1][1]), at) for at, d in enumerate(drawn) if d.exact)
    several = len(drawn) > 1
    step = 33 if several else 16
    parts, free = [], float(TOP)
    for place_left, (level, at) in zip(range(len(ends) - 1, -1, -1), ends, strict=True):
        drawn_curve = drawn[at]
        x, value = drawn_curve.exact[-1]
        lowest = HEIGHT - BOTTOM - step * place_left - (24 if several else 0)
        y = max(free, min(level, lowest))
        free = y + step
        parts.append(_text(frame.x(x) + 9, y + 4.5, number(value), "start", f"end f{at}"))
        if several:
            parts.append(_text(frame.x(x) + 9, y + 19, drawn_curve.name, "start", f"f{at}"))
    return parts


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    if not text:
        return ""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    for char, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(char, name)
    return clean(text)
