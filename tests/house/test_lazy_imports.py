"""An import inside a function spares something, and says what.

What it brings is not loaded with the file in any case; the reason stands beside it, or in a table here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.circles import Name
from tests.house.sources import ROOT, control_plane, imports, module_name, tree
from tests.house.test_circles import resolved

DOORS = {("hpctrain", "command"), ("hpctrain", "plugin"), ("hpctrain", "toolbox")}
"""Each of their names brings its own module, when it is asked for."""
COSTLY = {
    **dict.fromkeys(("difflib", "traceback", "shlex"), "only a mistake pays for it"),
    **dict.fromkeys(("unicodedata", "urllib", "threading", "importlib", "_socket"), "few need it"),
    **dict.fromkeys(("attrs", "cattrs"), "only what is read or taken apart pays for it"),
    **dict.fromkeys(("huggingface_hub", "numpy", "yaml", "jinja2"), "the package of an extra, or a slow one"),
    **dict.fromkeys(("shutil", "pathlib"), "few need it"),
}
"""What costs enough to be imported where it is used, wherever that is: the reason."""
COMMANDS = (
    "core/hpctrain/cli/",
    "plugins/hpctrain_plugins/checkpoints/cli/",
    "plugins/hpctrain_plugins/checkpoints/hub/",
    "plugins/hpctrain_plugins/local/demo/",
)
"""A command pays for the options that it is given, and --help for none."""
HOOKS = "Each hook imports what it needs when it is called"
"""In the first lines of a module of hooks; functions that are marked as hooks need no such line."""
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


def unexplained(module: ast.Module, lines: list[str]) -> Iterator[int]:
    """The lines of late imports that nobody gives a reason for."""
    if HOOKS in (ast.get_docstring(module) or ""):
        return
    explained = {
        id(node) for function in ast.walk(module) if _is_hook(function) for node in ast.walk(function)
    }
    for block in _blocks(module):
        first, last = block[0].lineno - 1, block[-1].end_lineno
        text = [
            *lines[first:last],
            *(line for line in lines[first - 1 : first] if line.strip().startswith("#")),
        ]
        if not (id(block[0]) in explained or any("#" in line for line in text)):
            yield from (node.lineno for node in block if not _is_costly(node))


def _is_hook(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        "hookimpl" in ast.unparse(d) for d in node.decorator_list
    )


def _is_costly(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return all(name.partition(".")[0] in COSTLY for name in names)


def _blocks(module: ast.Module) -> Iterator[list[ast.Import | ast.ImportFrom]]:
    """Late imports that stand one below the other."""
    late = sorted({node.lineno: node for node in lazy(module)}.items())
    block: list[ast.Import | ast.ImportFrom] = []
    for line, node in late:
        if block and line > (block[-1].end_lineno or 0) + 2:
            yield block
            block = []
        block.append(node)
    if block:
        yield block


def test_an_import_in_a_function_has_a_reason() -> None:
    found = [
        f"{path}:{line}"
        for path in control_plane()
        if not str(path).startswith(COMMANDS)
        for line in unexplained(tree(path), (ROOT / path).read_text(encoding="utf-8").splitlines())
    ]
    assert not found, "say in a comment what it spares"


def test_the_rule_sees_reasons() -> None:
    source = """
def f():
    import difflib


    import p.a


def g():
    import p.b  # few need it
    import p.c


def h():
    # few need it
    import p.d


@hookimpl
def i():
    import p.e
"""
    assert list(unexplained(ast.parse(source), source.splitlines())) == [6]
    assert not list(unexplained(ast.parse(f'"""{HOOKS}."""\ndef f():\n    import p.a\n'), []))


def test_what_is_imported_late_is_not_loaded_early() -> None:
    assert idle(control_plane()) == {}


def test_the_rule_sees_what_a_function_brings_again() -> None:
    source = "import json\nif TYPE_CHECKING:\n    import p.b\ndef f():\n    import json, p.b\n"
    ours: set[Name] = {("p", "b")}
    assert names_of(top_lines(ast.parse(source)), ours) == {("json",)}
    assert names_of(ast.Module(list(lazy(ast.parse(source))), []), ours) == {("json",), ("p", "b")}
