"""`plan --explain NAME`: who said what, and why, in the order in which they lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hpctrain.ui.table import facts
from hpctrain.ui.text import cells

if TYPE_CHECKING:
    from hpctrain.ui.term import Term

PLACES = {"job": "once in the job", "node": "each node", "task": "every rank"}


def explain_lines(entries: list[dict[str, Any]], term: Term) -> list[str]:
    """Every entry as a block, blocks apart by a blank line."""
    lines: list[str] = []
    for entry in entries:
        lines += [""] if lines else []
        lines += _SHOW[entry["kind"]](entry, term)
    return lines


def _variable(entry: dict[str, Any], term: Term) -> list[str]:
    first = entry["in_force"][0]
    nodes = entry["nodes"]
    where = f"step {entry['step']}, {PLACES[first['at']]}, {nodes} node{'s' if nodes != 1 else ''}"
    title = f"{entry['name']}={first['value']!r}"
    rows = [row for layer in entry["in_force"] for row in _layer("in force", layer, "")]
    rows += [row for layer in entry["lost"] for row in _layer("lost", layer, f"  {layer['value']!r}")]
    if not entry["lost"]:
        rows.append(("lost", "-  no other layer set it"))
    rows.append(("change", entry["change"]))
    space = " " * max(2, 34 - cells(title))
    whole = term.paint("name", title) + space + where
    narrow = term.clips and cells(title + space + where) > term.width
    return [*(_narrow(title, where, term) if narrow else [whole]), *facts(rows, term)]


def _layer(outcome: str, layer: dict[str, Any], value: str) -> Iterator[tuple[str, str]]:
    """One layer with its own reason and its own source below it."""
    yield outcome, f"{layer['how'].upper()}  {layer['source']}{value}"
    yield "why", layer["why"]
    if layer["fact"]:
        yield "fact", _fact(layer["fact"])


def _narrow(title: str, where: str, term: Term) -> list[str]:
    return [term.paint("name", part) for part in term.wrapped(title)] + term.wrapped(where)


def _fact(fact: dict[str, str]) -> str:
    weak = "" if fact["sure"] in ("official", "vendor") else f" ({fact['sure']})"
    return f"{fact['title']}, {fact['checked']}{weak}  {fact['url']}".rstrip()


def _word(entry: dict[str, Any], term: Term) -> list[str]:
    title = term.paint("name", entry["name"])
    return [f"{title}  step {entry['step']}, a word for {entry['scheduler']}"]


def _key(entry: dict[str, Any], term: Term) -> list[str]:
    origin = ", ".join(
        dict.fromkeys(filter(None, (entry["layer"], entry["where"])))
    )  # an option is its own place
    name = term.paint("name", entry["name"])
    if "value" not in entry:
        return [f"{name}  from {origin}; not used in this run"]
    nobody = "the default, not changed by any layer" if entry["default"] else "follows from other keys"
    return [f"{name} = {_toml(entry['value'])}  {f'from {origin}' if origin else nobody}"]


def _toml(value: Any) -> str:
    """A value as a run file writes it; what has none is a dash."""
    if isinstance(value, dict) and value:
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return "-" if value is None else json.dumps(value, ensure_ascii=False)


def _step(entry: dict[str, Any], term: Term) -> list[str]:
    where = "here" if entry["here"] else "as a job"
    rows = [
        ("place", f"{entry['place']}, {where}: the first that has {' and '.join(entry['needs']) or 'room'}"),
        ("after", " ".join(entry["after"]) or "-"),
        ("makes", entry["makes"] or "-"),
        ("by", entry["source"]),
    ]
    if entry["inputs"]:
        rows.append(("inputs", ", ".join(f"{k}={v}" for k, v in entry["inputs"].items())))
    return [f"step {term.paint('name', entry['name'])}", *facts(rows, term)]


def _about(entry: dict[str, Any], term: Term) -> list[str]:
    return [term.paint("name", entry["name"]), *facts([(k, v) for k, v in entry["rows"]], term)]


_SHOW = {"about": _about, "variable": _variable, "word": _word, "key": _key, "step": _step}
