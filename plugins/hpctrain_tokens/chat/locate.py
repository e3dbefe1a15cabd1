"""Where a value stands in a line of JSON, so that an error can point at it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

Path = Sequence["str | int"]

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def span(text: str, path: Path) -> tuple[int, int]:
    """The first column of the value at `path` and the one behind it, from 1; as far as the path goes."""
    at = _skip(text, 0)
    for step in path:
        inner = _member(text, at, step)
        if inner is None:
            break
        at = inner
    return at + 1, _end(text, at) + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _end(text: str, at: int) -> int:
    return int(_DECODER.raw_decode(text, at)[1])


def _member(text: str, at: int, step: str | int) -> int | None:
    """Where the member of an object or a list begins."""
    kind, number = text[at], 0
    at = _skip(text, at + 1)
    while at < len(text) and text[at] not in "]}":
        key: Any = number
        if kind == "{":
            key, at = scanstring(text, at + 1)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            return at
        at = _skip(text, _end(text, at))
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1
    return None


def dotted(path: Path) -> str:
    """A path of keys as text: `messages[1].role`."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
