"""No part of a folder imports a part that imports it: not at the top, in functions or for types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.circles import Name, circles, folder_graphs
from tests.house.sources import imports, module_name, python, tree


def arrows(paths: list[Path]) -> Iterator[tuple[Name, Name]]:
    """Who imports whom among these modules."""
    names = {module_name(path) for path in paths}
    for path in paths:
        importer = module_name(path)
        for statement in imports(tree(path)):
            imported = resolved(tuple(statement.name.split(".")), names)
            if imported is not None and imported != importer:
                yield importer, imported


def resolved(name: Name, modules: set[Name]) -> Name | None:
    """The module that an imported name is, or is defined in; None when it is none of these."""
    for length in range(len(name), 0, -1):
        for candidate in (name[:length], (*name[:length], "__init__")):
            if candidate in modules:
                return candidate
    return None


def parts_on_circles(paths: list[Path]) -> dict[Name, set[str]]:
    """Folder -> those of its parts that import each other in a circle."""
    parts = {folder: set().union(*circles(graph)) for folder, graph in folder_graphs(arrows(paths)).items()}
    return {folder: names for folder, names in parts.items() if names}


def test_nothing_imports_in_a_circle() -> None:
    assert parts_on_circles(python()) == {}


def test_the_rule_sees_a_circle_through_a_function_and_through_types() -> None:
    source = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.b\ndef f():\n    import p.c.x\n"
    )
    names = {("p", "a"), ("p", "b"), ("p", "c", "x")}
    imported = {resolved(tuple(i.name.split(".")), names) for i in imports(ast.parse(source))}
    assert imported == {None, ("p", "b"), ("p", "c", "x")}
    graphs = folder_graphs(
        [(("p", "a"), ("p", "c", "x")), (("p", "c", "x"), ("p", "b")), (("p", "b"), ("p", "a"))]
    )
    assert list(circles(graphs["p",])) == [{"a", "b", "c"}]
    assert list(circles(folder_graphs([(("p", "a"), ("p", "c", "x"))])["p",])) == []
