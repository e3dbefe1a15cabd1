"""From plain data to attrs classes, without coercion, with every mistake at once.

cattrs as it comes turns "no" into True and 2.7 into 2, and writes code for each class. Here every
shape that our tables have is read by a hook of ours, a class field by field: nothing is generated,
which costs less for classes that are structured once in a process. cattrs reads what is left: the
other types that a plugin's `Options` may have, with our hooks for what is inside of them.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

import attrs

from hpctrain.model.duration import Duration
from hpctrain.model.frozen import frozen
from hpctrain.runfile import scalars
from hpctrain.runfile.faults import (
    Fault,
    Mismatch,
    missing_key,
    unknown_key,
    wrong_type,
    wrong_value,
)
from hpctrain.runfile.keys import Key, nearest
from hpctrain.runfile.text import MOST

if TYPE_CHECKING:
    from cattrs import BaseConverter

T = TypeVar("T")
Check = Callable[[Any], Iterable[Fault]]
Hook = Callable[[Any, Any], Any]


@frozen
class Field:
    """A field of a class as a file may hold it."""

    attribute: attrs.Attribute[Any]
    kind: Any

    @property
    def required(self) -> bool:
        return self.attribute.default is attrs.NOTHING


@cache
def fields_of(cls: type) -> Mapping[str, Field]:
    """The legal keys of a table; fields that core fills in are none."""
    kinds = _kinds(cls)
    return {
        a.name: Field(a, kinds.get(a.name, Any))
        for a in attrs.fields(cls)
        if a.init and a.metadata.get("file", True)
    }


def _kinds(cls: type) -> dict[str, Any]:
    """What `typing.get_type_hints` gives, for a fifth of its time: hundreds of fields share a few types."""
    said = {
        name: (text, base.__module__)
        for base in reversed(cls.__mro__)
        for name, text in vars(base).get("__annotations__", {}).items()
    }
    if not all(_is_plain(text) for text, _ in said.values()):
        return typing.get_type_hints(cls)
    return {name: _read(text, module) for name, (text, module) in said.items()}


def _is_plain(said: object) -> bool:
    """Whether an annotation is a text without a name that is quoted once more."""
    return isinstance(said, str) and ("Literal" in said or not {"'", '"'}.intersection(said))


@cache
def _read(said: str, module: str) -> Any:
    """The type that an annotation of this module names."""
    return eval(said, vars(sys.modules[module]))  # noqa: S307  (as `typing` does, with a class's own text)


class Strict:
    """Structures plain data; `checks` look at a value of a class, or at the field `(cls, name)`."""

    def __init__(self, checks: Mapping[Any, Check] | None = None) -> None:
        self.checks = checks or {}
        self._hooks: dict[Any, Hook] = {Any: _unread, **scalars.READERS}
        self._shapes: tuple[tuple[Callable[[Any], bool], Hook], ...] = (
            (is_union, self._union),
            (is_mapping, self._mapping),
            (is_many, self._many),
            (scalars.is_choice, scalars.structure_choice),
            (attrs.has, self._table),
        )

    def __call__(self, value: Any, kind: type[T]) -> tuple[T | None, tuple[Fault, ...]]:
        """The value as `kind`, or None and what is wrong with it."""
        try:
            return self.structure(value, kind), ()
        except Mismatch as error:
            return None, error.faults

    def structure(self, value: Any, kind: Any) -> Any:
        """The value as `kind`; Mismatch has every fault."""
        hook = self._hooks.get(kind)
        if hook is None:
            fitting = (hook for fits, hook in self._shapes if fits(kind))
            hook = self._hooks[kind] = next(fitting, self._other)
        return hook(value, kind)

    def _other(self, value: Any, kind: Any) -> Any:
        return self._converter.structure(value, kind)

    @cached_property
    def _converter(self) -> BaseConverter:
        # Imported where a type asks for it: this and its choice among hooks took a tenth of a plan.
        from cattrs import BaseConverter

        made = BaseConverter(detailed_validation=False)  # else a Mismatch inside is wrapped
        for fits, hook in reversed(self._shapes):  # cattrs asks the last one first
            made.register_structure_hook_func(fits, hook)
        for kind, read in scalars.READERS.items():
            made.register_structure_hook(kind, read)
        return made

    def _table(self, value: Any, cls: Any) -> Any:
        parse = getattr(cls, "parse", None)
        if parse is not None and isinstance(value, str):
            return self._checked(_parsed(parse, value, cls), cls)
        if not isinstance(value, dict):
            needed = "a table" if parse is None else "a table or a string"
            raise wrong_type(value, needed, _example(value, cls))
        fields = fields_of(cls)
        faults = [_unknown(number, key, value, cls) for number, key in enumerate(value) if key not in fields]
        found: dict[str, Any] = {}
        for name, field in fields.items():
            if name in value:
                with _Collect(faults, name):
                    found[field.attribute.alias or name] = self._field(value[name], cls, field)
            elif field.required:
                faults.append(missing_key(name))
        if faults:
            raise Mismatch(faults)
        return self._checked(_made(cls, found), cls)

    def _field(self, value: Any, cls: type, field: Field) -> Any:
        structured = self.structure(value, field.kind)
        attribute = field.attribute
        if attribute.validator is not None:
            try:
                attribute.validator(None, attribute, structured)
            except (ValueError, TypeError) as error:
                rule = str(error.args[0]).removeprefix(f"'{attribute.name}' ")
                raise wrong_value(value, rule.removesuffix(f": {structured}")) from None
        return self._checked(structured, (cls, attribute.name))

    def _checked(self, value: Any, what: Any) -> Any:
        check = self.checks.get(what)
        faults = tuple(check(value)) if check else ()
        if faults:
            raise Mismatch(faults)
        return value

    def _many(self, value: Any, kind: Any) -> Any:
        if not isinstance(value, list):
            raise wrong_type(value, "an array", _example(value, kind))
        inner = get_args(kind)[0]
        pairs = self._items(enumerate(value), inner)
        return get_origin(kind)(item for _, item in pairs)

    def _mapping(self, value: Any, kind: Any) -> Any:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        return dict(self._items(value.items(), get_args(kind)[1]))

    def _items(self, pairs: Iterable[tuple[Key, Any]], inner: Any) -> list[tuple[Key, Any]]:
        faults: list[Fault] = []
        done = []
        for key, item in pairs:
            with _Collect(faults, key):
                done.append((key, self.structure(item, inner)))
        if faults:
            raise Mismatch(faults)
        return done

    def _union(self, value: Any, kind: Any) -> Any:
        members = [member for member in get_args(kind) if member is not type(None)]
        misses: list[Mismatch] = []
        for member in members:
            try:
                return self.structure(value, member)
            except Mismatch as error:  # noqa: PERF203 - the next member may fit
                misses.append(error)
        if len(misses) == 1:
            raise misses[0]
        inside = [m for m in misses if any(fault.path for fault in m.faults)]
        if inside:  # one shape fitted: what is wrong inside of it says more
            raise inside[0]
        raise wrong_type(value, scalars.one_of([words_for(member) for member in members]))


def _unread(value: Any, _: object) -> Any:
    return value


class _Collect:
    """Puts the faults of a block into a list, one key deeper, and goes on."""

    def __init__(self, faults: list[Fault], key: Key) -> None:
        self.faults, self.key = faults, key

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: object, __: object) -> bool:
        if not isinstance(error, Mismatch):
            return False
        self.faults += [fault.under(self.key) for fault in error.faults]
        return True


def _example(value: Any, kind: Any) -> str:
    """The text to paste for a value of another shape; only a mistake pays for this import."""
    from hpctrain.runfile.meant import as_array, meant

    return as_array(value, get_args(kind)[0]) if is_many(kind) else meant(value, kind)


def _unknown(number: int, key: str, table: Mapping[str, Any], cls: type) -> Fault:
    """Only so many mistakes are shown, and the search for the nearest key is slow."""
    from hpctrain.runfile.meant import origins

    fields, value = fields_of(cls), table[key]
    meant = known_as(key, fields)
    near = (meant,) if meant else nearest(key, fields) if number < MOST else ()
    beside = isinstance(value, dict) and all(_holds_table(fields[name].kind) for name in near)
    if not isinstance(value, dict) and number < MOST:
        near = _below(key, fields) or near
    fault = unknown_key(key, near, fields, table=beside)
    return attrs.evolve(fault, notes=(*fault.notes, *origins(table, cls)))


def _below(key: str, fields: Mapping[str, Field]) -> tuple[str, ...]:
    """`resources.nodes` for `noodes`, where a table of this one has the key and this one has none like it."""
    inner = {
        name: f"{table}.{name}"
        for table, field in fields.items()
        if attrs.has(field.kind)
        for name in fields_of(field.kind)
    }
    best = nearest(key, (*inner, *fields))[:1]
    return tuple(inner[name] for name in best if name not in fields)


def known_as(key: str, fields: Mapping[str, Field]) -> str:
    """The key that other tools call `key`, by the metadata `also` of a field."""
    return next((n for n, f in fields.items() if key in f.attribute.metadata.get("also", ())), "")


def _holds_table(kind: Any) -> bool:
    return attrs.has(kind) or is_mapping(kind) or any(map(_holds_table, get_args(kind)))


def _parsed(parse: Callable[[str], Any], value: str, cls: Any) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        needed, meant = error.args if len(error.args) == 2 else (str(error), "")
        raise wrong_value(value, needed, meant or _example(value, cls)) from None


def _made(cls: Any, found: dict[str, Any]) -> Any:
    try:
        return cls(**found)
    except (ValueError, TypeError) as error:  # a plugin's own __attrs_post_init__
        raise Mismatch([Fault(code="wrong-value", message=str(error))]) from None


def words_for(kind: Any) -> str:
    """A type in the words of a run file."""
    if is_many(kind):
        return "an array"
    if is_mapping(kind) or attrs.has(kind):
        return "a duration" if kind is Duration else "a table"
    if scalars.is_choice(kind):
        return "a word"
    words = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
    return words.get(kind, str(kind))


def is_many(kind: Any) -> bool:
    """`tuple[T, ...]` or `frozenset[T]`."""
    args = get_args(kind)
    if get_origin(kind) is tuple:
        return len(args) == 2 and args[1] is Ellipsis
    return get_origin(kind) is frozenset


def is_mapping(kind: Any) -> bool:
    """`Mapping[str, T]`."""
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_union(kind: Any) -> bool:
    """`T | None`, `T | U`."""
    return get_origin(kind) in (Union, types.UnionType)
