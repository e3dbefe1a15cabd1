"""From what people wrote to attrs classes, without coercion, with every mistake at once.

What a type is made of comes from `hpctrain.model.fields`; here stands what each form does with a value
of a file. cattrs reads what that walker does not take apart, the types of somebody else that a plugin's
`Options` may have. ARCHITECTURE ("Choices that surprise") says why not the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from hpctrain.model.duration import Duration
from hpctrain.model.fields import PLAIN, Field, Form, Kind, keys_of, kind_of
from hpctrain.runfile.faults import (
    Check,
    Fault,
    Mismatch,
    missing_key,
    unknown_key,
    wrong_type,
    wrong_value,
)
from hpctrain.runfile.judging import scalars
from hpctrain.runfile.keys import Key, nearest
from hpctrain.runfile.reading.text import MOST

if TYPE_CHECKING:
    from cattrs import BaseConverter

T = TypeVar("T")
Read = Callable[[Any, Kind], Any]


class Strict:
    """Structures plain data; `checks` look at a value of a class, or at the field `(cls, name)`."""

    def __init__(self, checks: Mapping[Any, Check] | None = None) -> None:
        self.checks = checks or {}
        self._readers: dict[Form, Read] = {
            Form.ANYTHING: lambda value, _: value,
            Form.PLAIN: lambda value, kind: scalars.READERS[kind.type](value),
            Form.CHOICE: scalars.read_choice,
            Form.TABLE: self._table,
            Form.MANY: self._many,
            Form.MAPPING: self._mapping,
            Form.UNION: self._union,
            Form.FOREIGN: self._foreign,
        }

    def __call__(self, value: Any, cls: type[T]) -> tuple[T | None, tuple[Fault, ...]]:
        """The value as one of `cls`, or None and what is wrong with it."""
        try:
            return self.structure(value, Kind(Form.TABLE, cls)), ()
        except Mismatch as error:
            return None, error.faults

    def structure(self, value: Any, kind: Kind) -> Any:
        """The value as `kind`; Mismatch has every fault."""
        return self._readers[kind.form](value, kind)

    def _table(self, value: Any, kind: Kind) -> Any:
        cls = kind.type
        parse = getattr(cls, "parse", None)
        if parse is not None and isinstance(value, str):
            return self._checked(_parsed(parse, value, kind), cls)
        if not isinstance(value, dict):
            needed = "a table" if parse is None else "a table or a string"
            raise wrong_type(value, needed, _example(value, kind))
        fields = keys_of(cls)
        faults = [_unknown(number, key, value, cls) for number, key in enumerate(value) if key not in fields]
        arguments: dict[str, Any] = {}
        for name, field in fields.items():
            if name in value:
                with _Collect(faults, name):
                    arguments[field.attribute.alias or name] = self._field(value[name], field)
            elif field.required:
                faults.append(missing_key(name))
        if faults:
            raise Mismatch(faults)
        return self._checked(_constructed(cls, arguments), cls)

    def _field(self, value: Any, field: Field) -> Any:
        try:
            structured = self.structure(value, field.kind)
        except Mismatch as error:
            raise _advised(error, field.instead_of(value)) from None
        attribute = field.attribute
        if attribute.validator is not None:
            try:
                attribute.validator(None, attribute, structured)
            except (ValueError, TypeError) as error:
                rule = str(error.args[0]).removeprefix(f"'{attribute.name}' ")
                raise wrong_value(value, rule.removesuffix(f": {structured}")) from None
        return self._checked(structured, (field.owner, field.name))

    def _checked(self, value: Any, subject: Any) -> Any:
        check = self.checks.get(subject)
        faults = tuple(check(value)) if check else ()
        if faults:
            raise Mismatch(faults)
        return value

    def _many(self, value: Any, kind: Kind) -> Any:
        if not isinstance(value, list):
            raise wrong_type(value, "an array", _example(value, kind))
        return kind.container(item for _, item in self._items(enumerate(value), kind.item))

    def _mapping(self, value: Any, kind: Kind) -> Any:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        return dict(self._items(value.items(), kind.item))

    def _items(self, pairs: Iterable[tuple[Key, Any]], kind: Kind) -> list[tuple[Key, Any]]:
        faults: list[Fault] = []
        structured = []
        for key, item in pairs:
            with _Collect(faults, key):
                structured.append((key, self.structure(item, kind)))
        if faults:
            raise Mismatch(faults)
        return structured

    def _union(self, value: Any, kind: Kind) -> Any:
        misses: list[Mismatch] = []
        for member in kind.parts:
            try:
                return self.structure(value, member)
            except Mismatch as error:  # noqa: PERF203 - the next member may fit
                misses.append(error)
        inside = [miss for miss in misses if any(fault.path for fault in miss.faults)]
        if inside:  # one shape fitted: what is wrong inside of it says more
            raise inside[0]
        raise wrong_type(value, scalars.one_of([words_for(member) for member in kind.parts]))

    def _foreign(self, value: Any, kind: Kind) -> Any:
        try:
            return self._converter.structure(value, kind.type)
        except Mismatch:
            raise
        except Exception as error:  # whatever a constructor of somebody else raises
            raise wrong_value(value, f"{words_for(kind)} is needed ({error})") from None

    @cached_property
    def _converter(self) -> BaseConverter:
        # Imported where a type asks for it: no plugin of ours does.
        from cattrs import BaseConverter

        converter = BaseConverter(detailed_validation=False)  # else a Mismatch inside is wrapped

        def read(value: Any, annotation: Any) -> Any:
            return self.structure(value, kind_of(annotation))

        converter.register_structure_hook_func(lambda a: kind_of(a).form is not Form.FOREIGN, read)
        for plain in PLAIN:  # cattrs looks for these by type before it asks a function
            converter.register_structure_hook(plain, read)
        return converter


def _advised(mismatch: Mismatch, advice: str) -> Mismatch:
    """The same with a note on what other tools call so."""
    if not advice:
        return mismatch
    return Mismatch([attrs.evolve(fault, notes=(*fault.notes, advice)) for fault in mismatch.faults])


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


def _example(value: Any, kind: Kind) -> str:
    """The text to paste for a value of another shape; only a mistake pays for this import."""
    from hpctrain.runfile.judging.suggestions import as_array, correction  # only a mistake pays for it

    return as_array(value, kind.item.type) if kind.form is Form.MANY else correction(value, kind.type)


def _unknown(number: int, key: str, table: Mapping[str, Any], cls: type) -> Fault:
    """Only so many mistakes are shown, and the search for the nearest key is slow."""
    from hpctrain.runfile.judging.suggestions import origins  # only a mistake pays for it

    fields, value = keys_of(cls), table[key]
    name = known_as(key, fields)
    near = (name,) if name else nearest(key, fields) if number < MOST else ()
    beside = isinstance(value, dict) and all(fields[name].kind.holds_table for name in near)
    if not isinstance(value, dict) and number < MOST:
        near = _below(key, fields) or near
    fault = unknown_key(key, near, fields, table=beside)
    return attrs.evolve(fault, notes=(*fault.notes, *origins(table, cls)))


def _below(key: str, fields: Mapping[str, Field]) -> tuple[str, ...]:
    """`resources.nodes` for `noodes`, where a table of this one has the key and this one has none like it."""
    inner = {
        name: f"{table}.{name}"
        for table, field in fields.items()
        if field.kind.form is Form.TABLE
        for name in keys_of(field.kind.type)
    }
    best = nearest(key, (*inner, *fields))[:1]
    return tuple(inner[name] for name in best if name not in fields)


def known_as(key: str, fields: Mapping[str, Field]) -> str:
    """The key that other tools call `key`."""
    return next((name for name, field in fields.items() if key in field.synonyms), "")


def _parsed(parse: Callable[[str], Any], value: str, kind: Kind) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        needed, example = error.args if len(error.args) == 2 else (str(error), "")
        raise wrong_value(value, needed, example or _example(value, kind)) from None


def _constructed(cls: Any, arguments: dict[str, Any]) -> Any:
    try:
        return cls(**arguments)
    except (ValueError, TypeError) as error:  # a plugin's own __attrs_post_init__
        raise Mismatch([Fault(code="wrong-value", message=str(error))]) from None


_WORDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Duration: "a duration",
    Form.MANY: "an array",
    Form.MAPPING: "a table",
    Form.TABLE: "a table",
    Form.CHOICE: "a word",
}


def words_for(kind: Kind) -> str:
    """A type in the words of a run file."""
    return _WORDS.get(kind.type) or _WORDS.get(kind.form) or f"a {getattr(kind.type, '__name__', kind.type)}"
