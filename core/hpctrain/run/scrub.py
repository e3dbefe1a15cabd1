"""Take secrets out of text: the values that we know, and the shapes that everybody knows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpctrain.runfile.judging.tokens import SHAPES

HIDDEN = "***"

SHORTEST = 4
"""Shorter values are left: taking "a" out of a log destroys the log and hides nothing."""


def scrub(text: str, values: Iterable[str] = ()) -> str:
    """`text` with every known value and every token of a well-known shape replaced by `***`."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return re.sub(SHAPES, _hide, text)


def _hide(match: re.Match[str]) -> str:
    named = match["named"]
    return match[0].replace(named, HIDDEN) if named else HIDDEN
