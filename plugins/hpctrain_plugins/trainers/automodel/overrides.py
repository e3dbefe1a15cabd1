"""Overrides as Automodel's command line takes them, and the words that it would drop.

Its parser passes over every word that does not begin with `--`, so `checkpoint.checkpoint_dir=…` did
nothing and two runs wrote to one folder. Here such a word is an error, and the others become values of the
one file that the run is started with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpctrain.plugin import Problem

WHERE = "train.automodel.overrides"


def problems(words: Iterable[str]) -> Iterator[Problem]:
    """Words that Automodel would not see as an override."""
    for word in words:
        key, sign, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            yield Problem(
                code="automodel-override",
                message=f"Automodel silently drops {word}: it does not begin with --",
                where=WHERE,
                hint=f'overrides = ["--{key}={value or "…"}"]',
            )
        elif not (sign and key):
            yield Problem(
                code="automodel-override",
                message=f"{word} sets nothing: KEY=VALUE is needed",
                where=WHERE,
                hint=f'overrides = ["--{key or "step_scheduler.max_steps"}=…"]',
            )


def values(words: Iterable[str]) -> dict[str, Any]:
    """The tables that the overrides stand for; a value is read as YAML, as Automodel reads it."""
    import yaml  # costs more than a plan without YAML may

    tables: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.removeprefix("--").partition("=")
        if not (word.startswith("--") and sign and key):
            continue
        *parents, last = key.split(".")
        table: Any = tables
        for part in parents:
            table = table.setdefault(part, {})
            if not isinstance(table, Mapping):
                break
        else:
            table[last] = _read(text, yaml)
    return tables


def _read(text: str, yaml: Any) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
