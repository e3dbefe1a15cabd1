"""Every public name is explained on a page, and so is whatever the examples of the pages use."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import pytest

from hpctrain.hooks import specs
from tests.docs.blocks import blocks, pages
from tests.house.sources import ROOT

PUBLIC = ("hpctrain", "hpctrain.plugin", "hpctrain.toolbox", "hpctrain.command", "hpctrain.testing")
FENCES = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


@cache
def explained() -> frozenset[str]:
    """The words that stand in backquotes or headings of pages, outside of examples."""
    texts = (FENCES.sub("", (ROOT / page).read_text(encoding="utf-8")) for page in pages())
    marked = (word for text in texts for word in re.findall(r"`([^`\n]+)`|^#+ (.+)$", text, re.MULTILINE))
    return frozenset(name for pair in marked for word in pair for name in re.findall(r"[A-Za-z_]\w*", word))


def examples() -> Iterator[tuple[str, ast.Module]]:
    """The Python of the pages and of the hooks' docstrings."""
    for page in pages():
        for block in blocks(page):
            if block.language == "python":
                yield block.place, ast.parse(block.text)
    for name, hook in vars(specs).items():
        if hasattr(hook, "hpctrain_spec"):
            text = (inspect.getdoc(hook) or "").partition("Example::\n")[2].partition("Since:")[0]
            yield name, ast.parse(textwrap.dedent(text))


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_a_page(module: str) -> None:
    assert set(import_module(module).__all__) - explained() == set()


def test_examples_import_public_names() -> None:
    imported = {
        (place, str(node.module), name.name)
        for place, tree in examples()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "hpctrain"
        for name in node.names
    }
    assert len(imported) > 20
    assert {(place, module) for place, module, _ in imported if module not in PUBLIC} == set()
    assert {row for row in imported if row[2] not in import_module(row[1]).__all__} == set()


def test_examples_use_attributes_that_are_explained() -> None:
    """Of our classes; `text.split()` is Python's."""
    public = [getattr(module, name) for module in map(import_module, PUBLIC) for name in module.__all__]
    own = {name for value in public if inspect.isclass(value) for name in dir(value)}
    own |= {name for value in public for name in getattr(value, "__annotations__", ())}
    used = {
        (place, node.attr)
        for place, tree in examples()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in own and not hasattr(str, node.attr)
    }
    assert len({name for _, name in used}) > 30
    assert {row for row in used if row[1] not in explained()} == set()
