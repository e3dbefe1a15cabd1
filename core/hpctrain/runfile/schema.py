"""JSON Schema of the run file, made from the classes that strictness uses, for editors."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from hpctrain.model.docstrings import docstrings
from hpctrain.model.duration import Duration
from hpctrain.model.fields import Field, Form, Kind, keys_of
from hpctrain.model.run import RunSpec
from hpctrain.runfile.chosen import TECHNOLOGIES
from hpctrain.runfile.judging.rules import ONE_OF
from hpctrain.runfile.load import Options

Schema = dict[str, Any]

_DURATION = r"^((\d+-)?\d{1,4}:[0-5]\d:[0-5]\d|(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$"
_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Duration: {"type": "string", "pattern": _DURATION, "examples": ["90m", "1:30:00", "2d"]},
}


def run_schema(options: Options | None = None) -> Schema:
    """The schema of a run file, with the tables of these technologies."""
    run = table_schema(RunSpec)
    _add_options(run, options or {})
    partial = _without_required(run)
    overlays = {"additionalProperties": partial, "description": "What differs on one cluster."}
    policy = {"type": "object", "description": "The site's policy, where you are stricter."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hpctrain run file",
        **run,
        "required": ["name"],  # the cluster may be the one whose login node this is
        "properties": {**run["properties"], "on": {"type": "object", **overlays}, "policy": policy},
    }


def _add_options(run: Schema, options: Options) -> None:
    for kind in TECHNOLOGIES:
        table = run["properties"][kind]
        named = {name: cls for (where, name), cls in options.items() if where == kind}
        table["properties"] |= {name: table_schema(cls) for name, cls in sorted(named.items())}
        table["additionalProperties"] = {"type": "object"}


def _without_required(schema: Schema) -> Schema:
    """An overlay gives a part of every table; rows of arrays stay whole."""
    partial = {key: value for key, value in schema.items() if key not in ("required", "oneOf")}
    if "properties" in partial:
        inner = partial["properties"]
        partial["properties"] = {key: _without_required(value) for key, value in inner.items()}
    return partial


def table_schema(cls: type) -> Schema:
    """The schema of one table, from its class."""
    fields = keys_of(cls)
    schema: Schema = {
        "type": "object",
        "description": docstrings(cls)[""],
        "properties": {name: _property(field) for name, field in fields.items()},
        "additionalProperties": False,
    }
    required = [name for name, field in fields.items() if field.required]
    if required:
        schema["required"] = required
    return schema


def _property(field: Field) -> Schema:
    default = field.default.value if isinstance(field.default, enum.Enum) else field.default
    notes = {"description": field.doc or None, "default": default}
    return _schema(field.kind) | {name: note for name, note in notes.items() if note is not None}


def _schema(kind: Kind) -> Schema:
    return _SCHEMAS[kind.form](kind)


def _table(kind: Kind) -> Schema:
    table = table_schema(kind.type)
    if kind.type in ONE_OF:
        table["oneOf"] = [{"required": [name]} for name in ONE_OF[kind.type]]
    return {"anyOf": [{"type": "string"}, table]} if hasattr(kind.type, "parse") else table


_SCHEMAS: Mapping[Form, Callable[[Kind], Schema]] = {
    Form.ANYTHING: lambda _: {},
    Form.PLAIN: lambda kind: dict(_PLAIN[kind.type]),
    Form.CHOICE: lambda kind: {"enum": [word for word in kind.choices if word != ""]},
    Form.TABLE: _table,
    Form.MANY: lambda kind: {"type": "array", "items": _schema(kind.item)},
    Form.MAPPING: lambda kind: {"type": "object", "additionalProperties": _schema(kind.item)},
    Form.UNION: lambda kind: {"anyOf": [_schema(part) for part in kind.parts]},
    Form.FOREIGN: lambda _: {},
}
