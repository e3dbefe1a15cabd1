"""What a terminal shows, as tmux captures it with its colours, drawn as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import attrs
from attrs import frozen

WIDE, HIGH, MARGIN = 8.4, 18, 14
"""Pixels of one character, and around all of them."""
PAPER, INK = "#1c2128", "#d3dae3"
COLOURS = ("#545d68", "#f47067", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#adbac7")
"""30 to 37, and 90 to 97."""
_CODES = re.compile(r"\x1b\[([0-9;]*)m")


@frozen
class Style:
    """How the characters that follow look."""

    colour: str = INK
    bold: bool = False
    dim: bool = False
    reverse: bool = False

    def after(self, codes: str) -> Style:
        """With these numbers of an escape sequence; one that is not drawn fails the test."""
        style = self
        for code in map(int, codes.replace(";", " ").split() or ["0"]):
            if code == 0:
                style = Style()
            elif code in (1, 2, 7):
                style = attrs.evolve(
                    style,
                    bold=style.bold or code == 1,
                    dim=style.dim or code == 2,
                    reverse=style.reverse or code == 7,
                )
            elif code == 39:
                style = attrs.evolve(style, colour=INK)
            elif code == 22:
                style = attrs.evolve(style, bold=False, dim=False)
            elif code == 27:
                style = attrs.evolve(style, reverse=False)
            elif code == 49:
                continue  # the paper's own colour
            else:
                assert code // 10 in (3, 9), f"{codes} is not drawn"
                assert code % 10 < 8, f"{codes} is not drawn"
                style = attrs.evolve(style, colour=COLOURS[code % 10])
        return style


def plain(screen: str) -> str:
    """Without colours."""
    return _CODES.sub("", screen)


def svg(screen: str, title: str) -> str:
    """The picture: each word stands at its column, whatever the reader's font is."""
    rows = screen.rstrip().splitlines()
    columns = max(len(plain(row)) for row in rows)
    width, height = columns * WIDE + 2 * MARGIN, len(rows) * HIGH + 2 * MARGIN
    body = "\n".join(text for number, row in enumerate(rows) for text in _texts(row, number))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'role="img" aria-label="{escape(title)}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14" '
        f'xml:space="preserve">\n{body}\n</g>\n</svg>\n'
    )


def _texts(row: str, number: int) -> Iterator[str]:
    style, column = Style(), 0
    for index, part in enumerate(_CODES.split(row)):
        if index % 2:
            style = style.after(part)
            continue
        for word in re.finditer(r"\S+(?: \S+)*", part):
            yield _text(word[0], column + word.start(), number, style)
        column += len(part)


def _text(text: str, column: int, row: int, style: Style) -> str:
    x, y, length = MARGIN + column * WIDE, MARGIN + row * HIGH, len(text) * WIDE
    look = f' fill="{PAPER if style.reverse else style.colour}"'
    look += ' font-weight="bold"' if style.bold else ""
    look += ' opacity="0.65"' if style.dim else ""
    box = f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{HIGH}" fill="{style.colour}"/>\n'
    return (
        f'{box if style.reverse else ""}<text x="{x:.1f}" y="{y + 14}" textLength="{length:.1f}"{look}>'
        f"{escape(text)}</text>"
    )
