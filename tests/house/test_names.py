"""Names say type and role. Words that say neither are counted, and their share may only fall."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.house.sources import python, tree

EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        alike alone asked asks both came each found given gives held here keeps kept known made makes
        meant mine more one ones other others own rest said same says seen shown such there told wanted
        wants what which
        """,
    )
)
"""Words that answer neither what a value is nor what it is for; first, last, left and right are none."""

SHARE = 0.001
"""The largest share of empty names. It was 0.081 in November 2026; tox has 0.006, pluggy none."""


def is_empty(name: str) -> bool:
    """Whether every part of a name is one of the empty words."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
    words = [part for part in parts if part]
    return bool(words) and all(word in EMPTY_WORDS for word in words)


def bound_names(module: ast.Module) -> Iterator[str]:
    """Every name that a module binds: variables, parameters, functions, classes."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def test_names_say_what_they_are() -> None:
    names = Counter(name for path in python() for name in bound_names(tree(path)))
    empty = Counter({name: count for name, count in names.items() if is_empty(name)})
    share = empty.total() / names.total()
    assert share <= SHARE, f"{share:.1%} of the names are empty: {empty.most_common(20)}"


def test_the_count_sees_every_kind_of_name() -> None:
    source = "def told(given):\n    said = 1\n    for each in given: pass\nclass Found: pass\n"
    assert [name for name in bound_names(ast.parse(source)) if is_empty(name)] == [
        "told",
        "Found",
        "given",
        "said",
        "each",
    ]


def test_names_with_one_telling_part_are_not_empty() -> None:
    assert not any(map(is_empty, ("found_path", "first", "last", "left", "known_hosts", "SAID_TEXT")))
