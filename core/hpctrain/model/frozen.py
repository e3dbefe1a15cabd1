"""`attrs.frozen` for the model: its classes share how they are shown, compared and hashed.

attrs compiles these three for each class, a seventh of the CPU time of a `plan` for its seventy classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from attrs import frozen as frozen
else:

    def frozen(cls: type | None = None, **options: Any) -> Any:
        """A class of values that never change; `options` are those of attrs."""
        if cls is None:
            return lambda made: frozen(made, **options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = _said
        cls.__eq__, cls.__hash__ = _equal, _hashed
        # Slots would build each class a second time.
        return attrs.frozen(cls, **{"slots": False, **options}, repr=False, eq=False)


def _said(value: Any) -> str:
    """`Name(field=…, …)`, as attrs writes it."""
    fields = (f"{a.name}={getattr(value, a.name)!r}" for a in attrs.fields(type(value)) if a.repr)
    return f"{type(value).__qualname__.rpartition('.')[2]}({', '.join(fields)})"


def _equal(one: Any, other: Any) -> Any:
    if other.__class__ is not one.__class__:
        return NotImplemented
    values = _values(one.__class__)
    return values(one) == values(other)


def _hashed(value: Any) -> int:
    return hash((value.__class__, _values(value.__class__)(value)))


@cache
def _values(cls: Any) -> Callable[[object], object]:
    """What reads the fields that count."""
    return attrgetter(*(a.name for a in attrs.fields(cls) if a.eq))
