"""Modules of public names that live elsewhere: each name is imported when it is first used.

A plan uses a few; importing all costs 180 calls to the file system of the 2,000 that it may make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of `module`; `homes` says of each name `package.module:name`."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, attribute = homes[name].partition(":")
        return getattr(import_module(home), attribute)

    return get
