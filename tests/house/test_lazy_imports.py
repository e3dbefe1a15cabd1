"""An import inside a function spares something: what it brings is not loaded with the file in any case."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.circles import Name
from tests.house.sources import control_plane, imports, module_name, tree
from tests.house.test_circles import resolved

DOORS = {("hpctrain", "command"), ("hpctrain", "plugin"), ("hpctrain", "toolbox")}
"""Each of their names brings its own module, when it is asked for."""
Loads = Mapping[Name, frozenset[Name]]
"""Module -> what its top lines import: modules of ours, and strangers by the name as it is written."""


def top_lines(module: ast.Module) -> ast.Module:
    """The module without what runs later or never: functions, and blocks for type checkers."""
    kept = [node for node in module.body if not isinstance(node, (ast.FunctionDef, ast.If))]
    classes = [node for node in kept if isinstance(node, ast.ClassDef)]
    for node in classes:
        node.body = [line for line in node.body if not isinstance(line, ast.FunctionDef)]
    return ast.Module(kept, [])


def lazy(module: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports inside functions."""
    for function in ast.walk(module):
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            for node in ast.walk(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    yield node


def names_of(module: ast.Module, ours: set[Name]) -> frozenset[Name]:
    """What a tree imports, with the packages that hold it."""
    found: set[Name] = set()
    for statement in imports(module):
        name = tuple(statement.name.split("."))
        loaded = resolved(name, ours) or name
        found.add(loaded)
        found |= {package for n in range(1, len(loaded)) if (package := (*loaded[:n], "__init__")) in ours}
    return frozenset(found)


def closure(start: Name, loads: Loads) -> set[Name]:
    """All that is loaded when a module is."""
    loaded: set[Name] = set()
    waiting = [start]
    while waiting:
        for name in loads.get(waiting.pop(), ()):
            if name not in loaded:
                loaded.add(name)
                waiting.append(name)
    return loaded


def idle(paths: list[Path]) -> dict[str, set[str]]:
    """File -> what its functions import though it is loaded already."""
    trees = {module_name(path): tree(path) for path in paths}
    ours = set(trees)
    loads = {name: names_of(top_lines(tree(path)), ours) for name, path in zip(trees, paths, strict=True)}
    found: dict[str, set[str]] = {}
    for (name, module), path in zip(trees.items(), paths, strict=True):
        loaded = closure(name, loads)
        late = names_of(ast.Module(list(lazy(module)), []), ours)
        if again := {".".join(n) for n in (late & loaded) - DOORS if n[-1] != "__init__"}:
            found[str(path)] = again
    return found


def test_what_is_imported_late_is_not_loaded_early() -> None:
    assert idle(control_plane()) == {}


def test_the_rule_sees_what_a_function_brings_again() -> None:
    source = "import json\nif TYPE_CHECKING:\n    import p.b\ndef f():\n    import json, p.b\n"
    ours: set[Name] = {("p", "b")}
    assert names_of(top_lines(ast.parse(source)), ours) == {("json",)}
    assert names_of(ast.Module(list(lazy(ast.parse(source))), []), ours) == {("json",), ("p", "b")}
