"""One configuration file for a run: the trainer's values with every place of the run filled in.

It holds all that was asked, so that nothing is left to overrides on a command line. What only the job
knows, such as its checkpoint folder, is written by the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hpctrain.plugin import File, Join, Loc, PluginError, Quote, Var, Word, words_in

WORDS = (Var, Loc, Join)


def yaml_file(path: str, values: Mapping[str, Any]) -> File:
    """`values` as a YAML file; a leaf may be a Loc, a Var, or a Join of them and text."""
    words: list[Word] = []
    mark = _absent_from(values)

    def hole(word: Any) -> str:
        if any(not isinstance(part, (str, Loc, Var)) for part in words_in(word)):
            raise PluginError.of("late-word", f"{word!r} cannot be used in {path}")
        words.append(word)
        return f"{mark}{len(words) - 1}x"

    parts = re.split(rf"{mark}(\d+)x", _dumped(values, hole))
    body = [words[int(part)] if i % 2 else part for i, part in enumerate(parts)]
    return File(path=path, body=tuple(part for part in body if part != ""), quote=Quote.YAML)


def filled(value: Any, fill: Callable[[str], Word]) -> Any:
    """`value` with `fill` applied to every text in it."""
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, Mapping):
        return {key: filled(inner, fill) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(inner, fill) for inner in value]
    return value


def _dumped(values: Mapping[str, Any], hole: Callable[[Any], str]) -> str:
    import yaml  # costs more than a plan without YAML may

    class Dumper(yaml.SafeDumper):
        """Values repeat instead of being named by anchors."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    for kind in WORDS:
        Dumper.add_representer(kind, lambda dumper, word: dumper.represent_str(hole(word)))
    return str(yaml.dump(dict(values), Dumper=Dumper, sort_keys=False, width=10_000))


def _absent_from(values: Mapping[str, Any]) -> str:
    """A mark for words that no text of the file can be taken for."""
    text = "\n".join(_texts(values))
    mark = "word"
    while mark in text:
        mark += "w"
    return mark


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
