"""Arrays of tables that have names: a layer's row takes the place of the rows of its name.

While layers are merged the rows stand in a table by name, so that all merging is of one kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from hpctrain.runfile.keys import Keys

ROWS: Mapping[tuple[str, ...], str] = {
    ("source",): "id",
    ("place",): "name",
    ("queue",): "name",
    ("network", "var"): "name",
    ("network", "precedent"): "name",
    ("var",): "name",
    ("reference",): "model",
    ("verify",): "fact",
}
"""The arrays of cluster.toml, and the key that names a row."""


@frozen
class Named:
    """Data with rows by name; `moved` says where a row stood: by name to by number."""

    data: dict[str, Any]
    moved: dict[Keys, Keys]


def by_name(data: Mapping[str, Any]) -> Named:
    """Rows by name; an array that is none, or rows without a name, stay for strictness to find."""
    named = Named(dict(data), {})
    for path, ident in ROWS.items():
        table, rows = _reach(named.data, path)
        if not isinstance(rows, list) or not all(_name(row, ident) for row in rows):
            continue
        rows_by_name: dict[str, list[Any]] = {}
        for number, row in enumerate(rows):
            same_name_rows = rows_by_name.setdefault(row[ident], [])
            name: Keys = (*path, row[ident], len(same_name_rows))
            named.moved[name] = (*path, number)
            same_name_rows.append(row)
        table[path[-1]] = rows_by_name
    return named


def by_number(data: Mapping[str, Any]) -> Named:
    """Arrays again, as classes have them."""
    numbered = Named(dict(data), {})
    for path in ROWS:
        table, rows = _reach(numbered.data, path)
        if not isinstance(rows, dict):
            continue
        flat: list[Any] = []
        for name in _in_order(rows):
            for number, row in enumerate(rows[name]):
                place: Keys = (*path, len(flat))
                numbered.moved[place] = (*path, name, number)
                flat.append(row)
        table[path[-1]] = flat
    return numbered


def _in_order(rows: Mapping[str, list[Any]]) -> list[str]:
    """The names of the rows, each that has a `before` in front of the one that it names."""
    names = list(rows)
    for name, same_name_rows in rows.items():
        before = next((str(row["before"]) for row in same_name_rows if row.get("before")), "")
        if before in rows and before != name:
            names.remove(name)
            names.insert(names.index(before), name)
    return names


def _name(row: object, ident: str) -> bool:
    return isinstance(row, dict) and isinstance(row.get(ident), str)


def _reach(data: dict[str, Any], path: tuple[str, ...]) -> tuple[dict[str, Any], Any]:
    """The table that holds the rows, copied so that the caller may change it, and the rows."""
    table = data
    for key in path[:-1]:
        inner = table.get(key)
        if not isinstance(inner, dict):
            return {}, None
        table[key] = dict(inner)
        table = table[key]
    return table, table.get(path[-1])
