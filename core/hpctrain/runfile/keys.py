"""Key paths as people write them, and the keys that come nearest to a mistyped one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

Key = str | int
Keys = tuple[Key, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def quoted(key: str) -> str:
    """One key as TOML writes it."""
    return key if _BARE.match(key) else json.dumps(key, ensure_ascii=False)


def dotted(path: Keys) -> str:
    """A path of keys as text: `environment.packages[1].path`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{quoted(key)}" if text else quoted(key)
    return text


def named(path: Keys) -> str:
    """The last key with its indexes: `packages[1]`."""
    start = len(path) - 1
    while start > 0 and isinstance(path[start], int):
        start -= 1
    return dotted(path[start:])


def nearest(word: str, legal: Iterable[str], cutoff: float = 0.55) -> tuple[str, ...]:
    """At most three legal words, the likeliest first."""
    from difflib import get_close_matches  # only a mistake pays for this import

    words = sorted(legal)
    matches = get_close_matches(word, words, n=3, cutoff=cutoff)
    return tuple(matches) or tuple(w for w in words if w.lower() == word.lower())
