"""Every key of a run with its value, whether somebody said it or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from attrs import frozen

from hpctrain.model.duration import Duration
from hpctrain.model.run import Package, RunSpec
from hpctrain.plan.encode import encode


@frozen
class Key:
    """A value as a file could write it, and whether it is the one that holds where nobody says any."""

    value: Any
    default: bool = False


def keys(run: RunSpec) -> dict[str, Key]:
    """Key path -> value; the options of a technology stand in the table of its name."""
    values = dict(_below("", run))
    for table in ("environment", "train"):
        part = getattr(run, table)
        if part.options is not None:
            values.update(_below(f"{table}.{part.use}.", part.options))
    return values


def _below(path: str, value: Any) -> Iterator[tuple[str, Key]]:
    for field in attrs.fields(type(value)):
        if not field.metadata.get("file", True):
            continue
        inner, name = getattr(value, field.name), f"{path}{field.name}"
        if _is_table(inner):
            yield from _below(f"{name}.", inner)
        elif isinstance(inner, Mapping) and inner:
            yield from _named(f"{name}.", inner)
        else:
            yield name, Key(_plain(inner), inner == _default(field))


def _named(path: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Key]]:
    """A table whose keys are the user's own names."""
    for name, inner in table.items():
        if _is_table(inner):
            yield from _below(f"{path}{name}.", inner)
        elif isinstance(inner, Mapping):
            yield from _named(f"{path}{name}.", inner)
        else:
            yield f"{path}{name}", Key(_plain(inner))


def _is_table(value: Any) -> bool:
    return attrs.has(type(value)) and not isinstance(value, Duration)


def _default(field: attrs.Attribute[Any]) -> Any:
    factory = getattr(field.default, "factory", None)
    return factory() if factory else field.default


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Package):
        fields = {k: v for k, v in encode(value).items() if v and k != "sha256"}
        return value.requirement or fields
    return encode(value)
