"""How long the documents are, in the terminal and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

BLOCKS = " ▏▎▍▌▋▊▉█"
WIDTH = 40
ROW, BAR, LEFT = 22, 460, 150


def rows(lengths: Mapping[str, int]) -> list[tuple[str, int]]:
    """The ranges of document lengths, without gaps, each with its number of documents."""
    bits = [int(b) for b in lengths]
    if not bits:
        return []
    return [(_range(b), lengths.get(str(b), 0)) for b in range(min(bits), max(bits) + 1)]


def _range(bits: int) -> str:
    if bits <= 1:
        return str(bits)
    return f"{1 << (bits - 1):,}-{(1 << bits) - 1:,}"


def lines(lengths: Mapping[str, int], *, ascii: bool = False, width: int = WIDTH) -> list[str]:  # noqa: A002
    """One bar a range: tokens a document, documents."""
    bars = rows(lengths)
    most = max((count for _, count in bars), default=1) or 1
    label = max((len(name) for name, _ in bars), default=0)
    return [f"{name:>{label}}  {_bar(n / most * width, ascii)} {n:,}" for name, n in bars]


def _bar(cells: float, ascii: bool) -> str:  # noqa: A002
    if ascii:
        return "#" * max(round(cells), cells > 0)
    eighths = max(round(cells * 8), cells > 0)
    return "█" * (eighths // 8) + BLOCKS[eighths % 8].strip()


def picture(lengths: Mapping[str, int], title: str) -> str:
    """The histogram of document lengths as SVG, with the numbers as text."""
    bars = rows(lengths)
    most = max((count for _, count in bars), default=1) or 1
    height = (len(bars) + 3) * ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" font-family="sans-serif"'
    parts = [
        f'{head} font-size="13"><rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="{ROW}" font-size="15">{escape(title)}</text>',
        f'<text x="12" y="{2 * ROW}" fill="#555555">tokens a document, documents</text>',
    ]
    for i, (name, count) in enumerate(bars):
        y = (i + 3) * ROW
        wide = count / most * BAR
        parts.append(
            f'<text x="{LEFT - 10}" y="{y}" text-anchor="end">{name}</text>'
            f'<rect x="{LEFT}" y="{y - 13}" width="{wide:.1f}" height="16" fill="#2a6f97"/>'
            f'<text x="{LEFT + wide + 6:.1f}" y="{y}">{count:,}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])
