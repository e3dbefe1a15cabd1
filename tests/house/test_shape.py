"""Sizes of files, versions of distributions, and the pages of the hooks."""

from __future__ import annotations

import ast
import inspect
import re
import statistics
import textwrap
from pathlib import Path
from types import FunctionType

import pytest

from hpctrain.hooks import results, specs
from tests.house.sources import ROOT, files

MOST, MIDDLE = 400, 100
HOOKS = {
    n: f for n, f in vars(specs).items() if isinstance(f, FunctionType) and f.__module__ == specs.__name__
}


def lines(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def test_files_are_small() -> None:
    sizes = {str(path): lines(path) for path in files(".py", ".sh")}
    tests = [p.relative_to(ROOT) for top in ("tests", "bench") for p in (ROOT / top).rglob("*.py")]
    long = {path: size for path, size in (sizes | {str(p): lines(p) for p in tests}).items() if size > MOST}
    assert not long
    assert statistics.median(sizes.values()) < MIDDLE


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_documented(name: str) -> None:
    doc = inspect.getdoc(HOOKS[name]) or ""
    first = doc.splitlines()[0]
    assert first.endswith("."), "the first line is a sentence"
    assert re.search(r"\b(PURE|ACTS)\b|observer", doc), "whether it may touch the world"
    assert re.search(r"^Since: \d+\.\d+$", doc, re.MULTILINE)
    example = textwrap.dedent(re.split(r"^Since:", doc.partition("Example::\n")[2], flags=re.MULTILINE)[0])
    assert f"def {name}(" in example
    compile(example, f"<example of {name}>", "exec")


@pytest.mark.parametrize("name", HOOKS)
def test_an_example_takes_arguments_that_exist_with_their_types(name: str) -> None:
    offered = {word: str(p.annotation) for word, p in inspect.signature(HOOKS[name]).parameters.items()}
    text = textwrap.dedent(
        (inspect.getdoc(HOOKS[name]) or "").partition("Example::\n")[2].partition("Since:")[0]
    )
    (function,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert function.name == name
    taken = {
        argument.arg: ast.unparse(argument.annotation)
        for argument in function.args.args
        if argument.annotation
    }
    assert len(taken) == len(function.args.args)
    assert taken.items() <= offered.items()


def test_every_hook_has_one_kind_of_result() -> None:
    assert set(results.MANY) | set(results.SINGLE) == set(HOOKS)
    assert not set(results.MANY) & set(results.SINGLE)
