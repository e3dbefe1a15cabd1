"""The docstrings of a class, of its fields and of its members, which only its source has."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from functools import cache

import attrs


@cache
def docstrings(cls: type) -> Mapping[str, str]:
    """The docstrings of a class: of each field (or member) by name, inherited ones too, and its own under
    ""."""
    texts = {
        name: text
        for base in reversed(cls.__bases__)
        if attrs.has(base)
        for name, text in docstrings(base).items()
    }
    texts[""] = _one_line(inspect.getdoc(cls) or cls.__name__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):  # a class made at run time has no source
        return texts
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef)), [])
    for before, after in itertools.pairwise(body):
        target = _target(before)
        if target and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            texts[target.id] = _one_line(str(after.value.value))
    return texts


def _target(node: ast.stmt) -> ast.Name | None:
    """The name of a field, or of a member of an enum."""
    first = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
    return first if isinstance(first, ast.Name) else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
