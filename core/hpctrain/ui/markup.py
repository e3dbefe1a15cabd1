"""Words, tables and whole pages as HTML: all that comes from outside is escaped here, and nowhere else."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING

from hpctrain.ui.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIGNATURE = "<!-- hpctrain report 1 -->"
"""The second line of every page: what tells ours from somebody else's."""


_LONG = ' class="long"'


def escaped(text: str) -> str:
    """`text` as HTML shows it: no markup, no controls, no marks that turn the direction of letters."""
    return escape(clean(text))


def heading(text: str) -> str:
    """The heading of a section."""
    return f"<h2>{escaped(text)}</h2>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Rows under headings, the first cell of each naming it; the columns `numbers` stand right."""
    right = set(numbers)
    styles = [' class="n"' if at in right else "" for at in range(len(headings))]
    top = "".join(
        f'<th scope="col"{style}>{escaped(word)}</th>' for word, style in zip(headings, styles, strict=True)
    )
    body = "".join(_row(row, styles) for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(cells: Sequence[str], styles: Sequence[str]) -> str:
    """A row whose first cell is its heading; long values may be broken anywhere."""
    name, *values = (
        f"{_LONG if not style and len(cell) > 40 else style}>{escaped(cell)}</t"
        for cell, style in zip(cells, styles, strict=True)
    )
    return f'<tr><th scope="row"{name}h>{"".join(f"<td{cell}d>" for cell in values)}</tr>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Labelled values, side by side where there is room."""
    items = (f"<div><dt>{escaped(label)}</dt><dd>{escaped(value)}</dd></div>" for label, value in pairs)
    return f'<dl class="facts">{"".join(items)}</dl>'


def folded(title: str, *parts: str) -> str:
    """Parts that are opened by a click."""
    return f"<details><summary>{escaped(title)}</summary>{''.join(parts)}</details>"


def lines(words: Iterable[str]) -> str:
    """Lines of a log or a file, as they are."""
    return f"<pre>{chr(10).join(map(escaped, words))}</pre>"


def page(title: str, parts: Iterable[str], *, style: str, script: str, data: object) -> str:
    """A page that stands alone: its policy allows this style and this script, and not one request."""
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            SIGNATURE,
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">',
            f"<title>{escaped(title)}</title>",
            f"<style>{style}</style></head><body>",
            *parts,
            f'<script type="application/json" id="data">{_json(data)}</script>',
            f"<script>{script}</script>",
            "</body></html>",
            "",
        ]
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _json(data: object) -> str:
    """JSON that no text in it can end."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
