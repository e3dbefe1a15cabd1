"""`--set a.b=VALUE`: one key over all layers."""

from __future__ import annotations

import json
from typing import Any

from hpctrain.errors import ConfigError, Problem, Span
from hpctrain.runfile.keys import dotted
from hpctrain.runfile.layers.layers import Tier
from hpctrain.runfile.reading.text import odd_values
from hpctrain.runfile.reading.toml import loads


def read_set(text: str) -> Tier:
    """The layer of one `--set`; a value that is no TOML is a string (`resources.time=90m`)."""
    key, equals, value = text.partition("=")
    table = _table(key.strip()) if equals else None
    if table is None:
        raise _refuse(text, f"{json.dumps(text, ensure_ascii=False)} is not KEY=VALUE")
    inner = table
    (name,) = inner
    while inner[name] is not None:
        inner = inner[name]
        (name,) = inner
    inner[name] = read_value(value.strip())
    for path, _, message, _ in odd_values(table, f"--set {key.strip()}"):
        raise _refuse(text, message, dotted(path))
    return Tier(name="--set", data=table, option=f"--set {text}")


def _table(key: str) -> dict[str, Any] | None:
    """`a.b` as {"a": {"b": None}}, or None when it is not one key."""
    try:
        data = loads(f"{key} = 0") if key and not key.startswith(("[", "#")) else {}
    except (ValueError, RecursionError):
        return None
    table = inner = data
    while len(inner) == 1:
        (name, below), *_ = inner.items()
        if below == 0 and not isinstance(below, dict):
            inner[name] = None
            return table
        inner = below
    return None


def read_value(text: str) -> Any:
    """A value of TOML, or the text itself where it is none."""
    try:
        data = loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return data["value"] if len(data) == 1 else text


def _refuse(text: str, message: str, where: str = "") -> ConfigError:
    span = Span(file=f"--set {text}", line=0)
    hint = "" if where else "--set resources.time=90m"
    return ConfigError(Problem(code="set", message=message, where=where, hint=hint, span=span))
