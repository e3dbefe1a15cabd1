"""JSON Schema of the run file, made from the classes that strictness uses, for editors."""

from __future__ import annotations

import ast
import enum
import inspect
import itertools
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

import attrs

from hpctrain.model.duration import Duration
from hpctrain.model.run import RunSpec
from hpctrain.runfile.alternatives import ONE_OF
from hpctrain.runfile.chosen import TECHNOLOGIES
from hpctrain.runfile.load import Options
from hpctrain.runfile.scalars import is_choice
from hpctrain.runfile.strict import fields_of, is_many, is_mapping, is_union

Schema = dict[str, Any]

_DURATION = r"^((\d+-)?\d{1,4}:[0-5]\d:[0-5]\d|(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$"
_SIMPLE: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Any: {},
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
    rest = {key: value for key, value in schema.items() if key not in ("required", "oneOf")}
    if "properties" in rest:
        inner = rest["properties"]
        rest["properties"] = {key: _without_required(value) for key, value in inner.items()}
    return rest


def table_schema(cls: type) -> Schema:
    """The schema of one table, from its class."""
    said = notes(cls)
    properties = {}
    for name, field in fields_of(cls).items():
        properties[name] = _schema(field.kind)
        note = said.get(name) or field.attribute.metadata.get("about")
        if note:
            properties[name]["description"] = note
        default = field.attribute.default
        if isinstance(default, (str, int, float)) and default != "":
            properties[name]["default"] = default
    schema: Schema = {
        "type": "object",
        "description": said[""],
        "properties": properties,
        "additionalProperties": False,
    }
    required = [name for name, field in fields_of(cls).items() if field.required]
    if required:
        schema["required"] = required
    return schema


def _schema(kind: Any) -> Schema:
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    for fits, make in _COMPOUND:
        if fits(kind):
            return make(kind)
    raise TypeError(f"no schema for {kind}")


def _class(cls: Any) -> Schema:
    table = table_schema(cls)
    if cls in ONE_OF:
        table["oneOf"] = [{"required": [name]} for name in ONE_OF[cls]]
    if not hasattr(cls, "parse"):
        return table
    return {"anyOf": [{"type": "string"}, table]}


def _many(kind: Any) -> Schema:
    return {"type": "array", "items": _schema(get_args(kind)[0])}


def _mapping(kind: Any) -> Schema:
    return {"type": "object", "additionalProperties": _schema(get_args(kind)[1])}


def _union(kind: Any) -> Schema:
    members = [_schema(member) for member in get_args(kind) if member is not type(None)]
    return members[0] if len(members) == 1 else {"anyOf": members}


def _choice(kind: Any) -> Schema:
    if get_origin(kind) is Literal:
        return {"enum": [choice for choice in get_args(kind) if choice != ""]}
    members: type[enum.Enum] = kind
    return {"enum": [member.value for member in members]}


_COMPOUND: tuple[tuple[Callable[[Any], bool], Callable[[Any], Schema]], ...] = (
    (is_union, _union),
    (is_many, _many),
    (is_mapping, _mapping),
    (is_choice, _choice),
    (attrs.has, _class),
)


@cache
def notes(cls: type) -> Mapping[str, str]:
    """The docstring of a class under "" and those of its fields, which only their source has."""
    found = {
        name: note
        for base in reversed(cls.__bases__)
        if attrs.has(base)
        for name, note in notes(base).items()
    }
    found[""] = _plain(inspect.getdoc(cls) or cls.__name__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):  # a class made at run time has no source
        return found
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef)), [])
    for before, after in itertools.pairwise(body):
        target = _target(before)
        if target and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[target.id] = _plain(str(after.value.value))
    return found


def _target(node: ast.stmt) -> ast.Name | None:
    """The name of a field, or of a member of an enum."""
    first = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
    return first if isinstance(first, ast.Name) else None


def _plain(text: str) -> str:
    return " ".join(text.split())
