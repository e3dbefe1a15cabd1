"""What `hpctrain help` and the pages of docs/ say of cluster.toml and of the values that hooks return.

Both are read from the classes themselves, whose fields have docstrings.
"""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, get_args, get_type_hints

import attrs

from hpctrain.cli.table import COMMANDS
from hpctrain.model.frozen import frozen
from hpctrain.runfile.schema import notes, table_schema
from hpctrain.runfile.strict import fields_of

VALUES = {
    "Words": ("model.words", "Var Loc Join Secret Raw Cmd"),
    "Around a command": ("model.layer", "Layer EnvVar How At Module Bind File Quote"),
    "Steps": ("model.step", "Step Need Artifact Pin After When Launch Ranks"),
    "Training": ("model.train", "Train Layout Pattern Numbers"),
    "The run": ("model.run", "RunSpec Code Stack"),
    "The cluster": ("model.cluster", "Cluster"),
    "The plan": ("model.plan", "Plan PlannedStep"),
    "Jobs": ("model.job", "JobFiles Job JobState State Allocation Event Rule"),
    "Scripts": ("render.scripts", "Shape"),
    "Problems": ("errors", "Problem"),
}
"""Heading -> the module below `hpctrain` and its classes, in the order of the page."""
WIDTH = 100


@frozen(kw_only=True)
class Row:
    """One key, field or member."""

    name: str
    kind: str = ""
    default: str = ""
    needed: bool = False
    says: str = ""


@frozen(kw_only=True)
class Section:
    """A table of cluster.toml or a class; `topics` are what people ask for."""

    title: str
    says: str
    rows: tuple[Row, ...]
    topics: tuple[str, ...]


def cluster_file() -> list[Section]:
    """Every table of cluster.toml, the keys at its top first."""
    from hpctrain.model.cluster import Cluster

    return list(_tables(Cluster, "the top", ("cluster-file", "cluster")))


def values() -> dict[str, list[Section]]:
    """The classes that plugins use, by heading."""
    found = {}
    for heading, (module, names) in VALUES.items():
        home = import_module(f"hpctrain.{module}")
        found[heading] = [_value(getattr(home, name)) for name in names.split()]
    return found


def about(topic: str) -> list[Section]:
    """What there is on `place`, `Layer`, `values`, `cluster-file`; [] when nobody knows the word."""
    facts, classes = cluster_file(), [s for sections in values().values() for s in sections]
    whole = {"cluster-file": facts, "values": classes}
    return whole.get(topic.lower()) or [s for s in (*facts, *classes) if topic.lower() in s.topics]


def topics() -> set[str]:
    """Every word that `about` knows."""
    classes = (s for sections in values().values() for s in sections)
    return {"values", *(topic for s in (*cluster_file(), *classes) for topic in s.topics)}


def plain(section: Section) -> Iterator[str]:
    """A section as lines for a terminal."""
    yield section.title
    yield ""
    yield from _wrapped(section.says, "")
    yield ""
    for row in section.rows:
        more = [row.kind, "needed" if row.needed else "", f"default {row.default}" if row.default else ""]
        yield f"  {row.name}   {', '.join(filter(None, more))}".rstrip()
        yield from _wrapped(row.says, "      ")
    yield ""


def kind_of(schema: Mapping[str, Any]) -> str:
    """A type of JSON schema in words."""
    if "enum" in schema:
        return " or ".join(str(word) for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(kind_of(inner) for inner in schema["anyOf"])
    if schema.get("pattern"):
        return "duration"
    if schema.get("type") == "array":
        return f"list of {kind_of(schema['items'])}"
    words = {"object": "table", "integer": "whole number", "boolean": "true or false", None: "anything"}
    return words.get(schema.get("type"), str(schema.get("type")))


def _tables(cls: type, title: str, asked: tuple[str, ...], path: str = "") -> Iterator[Section]:
    schema, inner = table_schema(cls), dict(_inner(cls))
    rows = tuple(_row(name, row, schema) for name, row in schema["properties"].items() if name not in inner)
    yield Section(title=title, says=schema["description"], rows=rows, topics=asked)
    for name, (kind, form) in inner.items():
        where = f"{path}{name}"
        yield from _tables(kind, form.format(where), (name, kind.__name__.lower()), f"{where}.")


def _inner(cls: type) -> Iterator[tuple[str, tuple[type, str]]]:
    """The keys of a table that are tables themselves, each with its class and how it is written."""
    for name, field in fields_of(cls).items():
        members = [m for m in (field.kind, *get_args(field.kind)) if isinstance(m, type) and attrs.has(m)]
        origin = str(getattr(field.kind, "__origin__", ""))
        form = "[[{}]]" if "tuple" in origin else "[{}.NAME]" if "Mapping" in origin else "[{}]"
        yield from ((name, (member, form)) for member in members)


def _row(name: str, row: Mapping[str, Any], table: Mapping[str, Any]) -> Row:
    default = row.get("default")
    return Row(
        name=name,
        kind=kind_of(row),
        default=_said(default) if default not in (None, 0, False) else "",
        needed=name in table.get("required", ()),
        says=row.get("description", ""),
    )


def _said(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def _value(cls: type) -> Section:
    said = notes(cls)
    rows = _members(cls) if issubclass(cls, enum.Enum) else _fields(cls)
    asked = cls.__name__.lower()
    topics = () if asked in COMMANDS else (asked,)  # `hpctrain help plan` is the command's
    return Section(title=cls.__name__, says=said[""], rows=tuple(rows), topics=topics)


def _members(cls: type[enum.Enum]) -> Iterator[Row]:
    yield from (Row(name=member.name, says=notes(cls).get(member.name, "")) for member in cls)


def _fields(cls: type) -> Iterator[Row]:
    kinds = get_type_hints(cls)
    for field in attrs.fields(cls):
        needed = field.default is attrs.NOTHING
        shown = not needed and isinstance(field.default, (str, int, enum.Enum)) and field.default != ""
        yield Row(
            name=field.name,
            kind=str(field.type),
            default=str(field.default) if shown else "",
            needed=needed,
            says=notes(cls).get(field.name) or _says(kinds[field.name]),
        )


def _says(kind: Any) -> str:
    """What the class of a field says of itself, in a sentence."""
    found = (notes(member)[""] for member in (kind, *get_args(kind)) if attrs.has(member))
    first = next(found, "").partition(". ")[0]
    return f"{first.rstrip('.')}." if first else ""


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
