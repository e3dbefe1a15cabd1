"""`attrs.frozen` for the model: a class is finished when it is first used, and all share how they are shown.

attrs takes a quarter of a millisecond of CPU time for each, and a `plan` uses two of three that it imports.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from threading import RLock
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
        options = {"slots": False, **options, "repr": False, "eq": False}
        if "__init__" in vars(cls):
            return attrs.frozen(cls, **options)
        cls.__attrs_attrs__ = _Waiting(cls, options)
        cls.__init__ = _first
        return cls


_MAKING = RLock()


class _Waiting:
    """Stands where attrs keeps the fields of a class, and has them made when somebody looks."""

    def __init__(self, cls: type, options: Any) -> None:
        self.cls, self.options = cls, options

    def __get__(self, _: object, __: type) -> Any:
        cls = self.cls
        with _MAKING:
            if vars(cls)["__attrs_attrs__"] is self:
                del cls.__attrs_attrs__, cls.__init__  # type: ignore[attr-defined, misc]
                attrs.frozen(cls, **self.options)
        return vars(cls)["__attrs_attrs__"]


def _first(self: Any, *args: Any, **fields: Any) -> None:
    """The first value of a class is about to be made."""
    attrs.fields(type(self))
    self.__init__(*args, **fields)


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
