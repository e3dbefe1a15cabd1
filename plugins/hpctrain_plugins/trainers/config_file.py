"""A trainer's configuration as a file whose values may be words that are bound late."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from hpctrain.plugin import File, Join, Loc, PluginError, Quote, Word, words_in


def json_file(path: str, values: Mapping[str, Any]) -> File:
    """`values` as a JSON file; a leaf may be a Loc, or a Join of text and Locs.

    A Var or a Secret is refused: no shell reads this file, so nothing would expand it.
    """
    words: list[Word] = []
    mark = _absent_from(_dumped(values, lambda _: ""))

    def hole(word: object) -> str:
        words.append(_bindable(path, word))
        return f"{mark}{len(words) - 1}"

    parts = re.split(rf'"{mark}(\d+)"', _dumped(values, hole))
    body = [words[int(part)] if i % 2 else part for i, part in enumerate(parts)]
    return File(path=path, body=tuple(body), quote=Quote.JSON)


def _dumped(values: Mapping[str, Any], default: Callable[[object], str]) -> str:
    return json.dumps(dict(values), default=default, indent=2, allow_nan=False) + "\n"


def _absent_from(text: str) -> str:
    """A mark for words that no text of the file can be taken for."""
    mark = "word"
    while mark in text:
        mark += "_"
    return mark


def _bindable(path: str, word: object) -> Word:
    if isinstance(word, (Loc, Join)) and all(isinstance(part, (str, Loc)) for part in words_in(word)):
        return word
    raise PluginError.of("late-word", f"{word!r} cannot be used in {path}: no shell expands it there")
