"""The tables of cluster.toml, of a run file and of the settings, as sections of help and pages.

All is read from the classes that strictness uses, whose fields have docstrings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.cli.show.sections import ANY, Row, Section
from hpctrain.errors import HpctrainError
from hpctrain.hooks.load import find, load
from hpctrain.hooks.scan import names
from hpctrain.model.cluster import Cluster
from hpctrain.model.fields import Field, Form, keys_of
from hpctrain.model.run import RunSpec
from hpctrain.runfile.chosen import TECHNOLOGIES
from hpctrain.runfile.layers.settings import Settings
from hpctrain.runfile.schema import table_schema

CLUSTER_FILE, RUN_FILE, SETTINGS = "cluster.toml", "the run file", "the settings"
TOP = "the top"


def cluster_file() -> list[Section]:
    """Every table of cluster.toml, the keys at its top first."""
    return list(_tables(CLUSTER_FILE, Cluster, TOP, ("cluster",)))


def run_file() -> list[Section]:
    """Every table of a run file, those of installed technologies last."""
    sections = list(_tables(RUN_FILE, RunSpec, TOP, ()))
    for table, kind in TECHNOLOGIES.items():
        for name in names(kind):
            try:
                module = load(find(kind, name))
            except HpctrainError:
                continue  # a broken plugin only lacks its table
            if hasattr(module, "Options"):
                path = (table, name)
                sections += _tables(RUN_FILE, module.Options, f"[{table}.{name}]", (name,), path)
    return sections


def settings() -> list[Section]:
    """Every table of the settings."""
    return list(_tables(SETTINGS, Settings, TOP, ()))


def type_words(schema: Mapping[str, Any]) -> str:
    """A type of JSON schema in words."""
    if "enum" in schema:
        return " or ".join(str(word) for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(type_words(inner) for inner in schema["anyOf"])
    if schema.get("pattern"):
        return "duration"
    if schema.get("type") == "array":
        return f"list of {type_words(schema['items'])}"
    words = {"object": "table", "integer": "whole number", "boolean": "true or false", None: "anything"}
    return words.get(schema.get("type"), str(schema.get("type")))


def _tables(
    file: str, cls: type, title: str, topics: tuple[str, ...], path: tuple[str, ...] = ()
) -> Iterator[Section]:
    """The section of a table, then those of the tables in it."""
    schema, tables = table_schema(cls), dict(_inner(cls))
    rows = (
        _row(field, schema["properties"][name]) for name, field in keys_of(cls).items() if name not in tables
    )
    text = schema["description"]
    yield Section(title=title, text=text, rows=tuple(rows), topics=topics, file=file, path=path)
    for name, (inner, form, below) in tables.items():
        where = (*path, name)
        heading = form.format(".".join(where))
        yield from _tables(file, inner, heading, (name, inner.__name__.lower()), (*where, *below))


def _inner(cls: type) -> Iterator[tuple[str, tuple[type, str, tuple[str, ...]]]]:
    """The keys of a table that are tables themselves: the class, how it is written, and what a path adds."""
    for name, field in keys_of(cls).items():
        below: tuple[str, ...] = ()
        form, kind = "[{}]", field.kind
        if kind.form is Form.MANY:
            form, kind = "[[{}]]", kind.item
        elif kind.form is Form.MAPPING:
            form, kind, below = f"[{{}}.{ANY}]", kind.item, (ANY,)
        if kind.form is Form.TABLE:
            yield name, (kind.type, form, below)


def _row(field: Field, schema: Mapping[str, Any]) -> Row:
    default = schema.get("default")
    return Row(
        name=field.name,
        kind=type_words(schema),
        default=json.dumps(default).strip('"') if default else "",
        needed=field.required,
        meaning=field.doc,
    )
