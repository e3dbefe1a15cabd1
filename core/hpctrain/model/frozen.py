"""`attrs.frozen` for the model: its fields are attrs' own, its methods are written here once for all classes.

attrs writes and compiles methods for each class, 0.2 ms of CPU time, and a `plan` makes values of 70: one
eighth of it. Here attrs reads the fields, when somebody asks for them first, and is stopped before it
writes. What it offers for values works with these: `evolve`, `asdict`, `has`, `fields`. Of what it offers for
fields our classes use defaults, factories, validators and metadata; the rest is refused.
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
        cls.__init__ = _filled
        return cls


_MAKING = RLock()


class _Waiting:
    """Stands where attrs keeps the fields of a class, and has them read when somebody looks."""

    def __init__(self, cls: type, options: Any) -> None:
        self.cls, self.options = cls, options

    def __get__(self, _: object, __: type) -> Any:
        cls: Any = self.cls
        with _MAKING:
            if vars(cls)["__attrs_attrs__"] is self:
                fields = _fields(cls, self.options)
                for name in vars(cls).keys() & {field.name for field in fields}:
                    delattr(cls, name)
                cls.__match_args__ = tuple(f.name for f in fields if not f.kw_only)  # type: ignore[misc]
                cls.__setattr__ = cls.__delattr__ = _refused
                cls.__attrs_attrs__ = fields
        return vars(cls)["__attrs_attrs__"]


class _Found(Exception):
    """The fields of a class, thrown past all that attrs would write for them."""


def _fields(cls: type, options: Any) -> tuple[attrs.Attribute[Any], ...]:
    # Up to attrs 25 a field gets its other name only after this.
    def stop(_: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
        raise _Found(*(field if field.alias else field.evolve(alias=field.name) for field in fields))

    try:
        attrs.frozen(cls, **options, field_transformer=stop)
    except _Found as found:
        return found.args
    raise AssertionError(f"attrs did not read the fields of {cls}")


class _Form:
    """What it takes to make a value of a class."""

    def __init__(self, cls: Any) -> None:
        fields = attrs.fields(cls)
        assert not any(map(_unheeded, fields)), f"{cls} wants more of attrs: decorate it with attrs.frozen"
        self.places: tuple[str, ...] = cls.__match_args__
        self.names = frozenset(field.name for field in fields)
        defaults = {field.name: field.default for field in fields if field.default is not attrs.NOTHING}
        self.needed = self.names - defaults.keys()
        made: Any = attrs.Factory  # a class, whatever its types say
        self.factories = {name: value.factory for name, value in defaults.items() if isinstance(value, made)}
        self.defaults = {name: value for name, value in defaults.items() if name not in self.factories}
        self.checked = tuple(field for field in fields if field.validator is not None)


def _unheeded(field: attrs.Attribute[Any]) -> bool:
    other = field.converter is not None or field.alias != field.name
    return other or not field.init or getattr(field.default, "takes_self", False)


_form = cache(_Form)


def _filled(value: Any, /, *args: Any, **given: Any) -> None:
    """The `__init__` of all these classes."""
    form = _form(value.__class__)
    said = {**given, **dict(zip(form.places, args, strict=False))}
    if not form.needed <= said.keys() <= form.names or len(said) < len(args) + len(given):
        raise TypeError(_wrong(value.__class__, form, args, given))
    held = vars(value)
    held.update(form.defaults)
    held.update(said)
    for name, make in form.factories.items():
        if name not in said:
            held[name] = make()
    for field in form.checked:
        field.validator(value, field, held[field.name])


def _wrong(cls: type, form: _Form, args: Any, given: Any) -> str:
    placed = form.places[: len(args)]
    for name in given:
        if name not in form.names:
            return f"{cls.__qualname__}() has no field {name}"
        if name in placed:
            return f"{cls.__qualname__}() is given {name} twice"
    if len(args) > len(placed):
        return f"{cls.__qualname__}() takes {len(placed)} values without a name, not {len(args)}"
    return f"{cls.__qualname__}() needs {', '.join(sorted(form.needed - {*placed, *given}))}"


def _refused(*_: object) -> None:
    raise attrs.exceptions.FrozenInstanceError


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
