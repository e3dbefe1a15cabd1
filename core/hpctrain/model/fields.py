"""The one walker over annotations: the fields of a class, each with its type taken apart.

Strict reading (`runfile/judging/strict.py`), the JSON schema (`runfile/schema.py`), the reference pages
(`cli/show/`) and the check of what hooks return (`hooks/values.py`) all go by these fields: each
of them says what it does for a `Form`, and none looks at an annotation itself.
"""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from attrs import frozen

from hpctrain.model.duration import Duration

PLAIN = (str, int, float, bool, Duration)
"""Types that a file writes as one scalar."""


class Form(enum.Enum):
    """The kinds of types that a field may have."""

    ANYTHING = "anything"
    """`Any`: nothing is looked at."""
    PLAIN = "plain"
    """One of `PLAIN`."""
    CHOICE = "choice"
    """An enum or a `Literal`."""
    TABLE = "table"
    """A class of attrs."""
    MANY = "many"
    """`tuple[T, ...]`, `list[T]`, `set[T]` or `frozenset[T]`."""
    MAPPING = "mapping"
    """`Mapping[str, T]` or `dict[str, T]`."""
    UNION = "union"
    """`T | U`; `T | None` is a T that is optional."""
    FOREIGN = "foreign"
    """A type of somebody else, which is not taken apart: `pathlib.Path`."""


@frozen
class Kind:
    """The type of a field, taken apart into its form and its parts."""

    form: Form
    type: Any
    """The annotation, without its None."""
    parts: tuple[Kind, ...] = ()
    """MANY, MAPPING: the kind of the items, alone; UNION: its members."""
    optional: bool = False
    """Whether None is a value of it."""

    @property
    def item(self) -> Kind:
        """The kind of the items; only for MANY and MAPPING."""
        return self.parts[0]

    @property
    def container(self) -> Any:
        """The class that holds the items: tuple, list, set or frozenset; only for MANY."""
        return get_origin(self.type)

    @property
    def choices(self) -> Mapping[Any, Any]:
        """Each word as a file writes it, with the value that it becomes; only for CHOICE."""
        if get_origin(self.type) is Literal:
            return {word: word for word in get_args(self.type)}
        return {member.value: member for member in self.type}

    @property
    def holds_table(self) -> bool:
        """Whether a file may write it as a table, or as an array of them."""
        return self.form in (Form.TABLE, Form.MAPPING) or any(part.holds_table for part in self.parts)


def kind_of(annotation: Any) -> Kind:
    """The type that an annotation names, resolved before: no text."""
    # Not cached: Literal["a", "b"] equals Literal["b", "a"], and messages keep the order of each.
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _union(tuple(a for a in arguments if a is not types.NoneType), types.NoneType in arguments)
    if annotation is Any:
        return Kind(Form.ANYTHING, annotation)
    if annotation in PLAIN:
        return Kind(Form.PLAIN, annotation)
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, enum.Enum)):
        return Kind(Form.CHOICE, annotation)
    if origin in (list, set, frozenset) or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return Kind(Form.MANY, annotation, (kind_of(arguments[0]),))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Kind(Form.MAPPING, annotation, (kind_of(arguments[1]),))
    return Kind(Form.TABLE if attrs.has(annotation) else Form.FOREIGN, annotation)


def _union(members: tuple[Any, ...], optional: bool) -> Kind:
    if len(members) == 1:
        return attrs.evolve(kind_of(members[0]), optional=optional)
    return Kind(Form.UNION, Union[members], tuple(map(kind_of, members)), optional)  # noqa: UP007 - as many as there are


@frozen
class Field:
    """One field of an attrs class, with its type taken apart."""

    owner: type
    attribute: attrs.Attribute[Any]
    kind: Kind

    @property
    def name(self) -> str:
        """The name of the field, in the class and in files."""
        return self.attribute.name

    @property
    def required(self) -> bool:
        """Whether the field has no default, so that a file must set it."""
        return self.attribute.default is attrs.NOTHING

    @property
    def default(self) -> Any:
        """A default that can be written down, else None: what a factory makes cannot."""
        default: Any = self.attribute.default
        scalar = isinstance(default, (str, int, float, enum.Enum)) and default not in ("", attrs.NOTHING)
        return default if scalar else None

    @property
    def doc(self) -> str:
        """The docstring of the field, or else its metadata `about`."""
        from hpctrain.model.docstrings import docstrings  # parses the source: only pages need it

        return docstrings(self.owner).get(self.name) or self.attribute.metadata.get("about", "")

    @property
    def annotation(self) -> str:
        """The type of the field as the source writes it: an alias tells more than the type that it names."""
        texts = (inspect.get_annotations(cls).get(self.name) for cls in self.owner.__mro__)
        return str(next(filter(None, texts), ""))

    @property
    def synonyms(self) -> tuple[str, ...]:
        """What it is called by the tools that people come from: the metadata `also`."""
        names: tuple[str, ...] = self.attribute.metadata.get("also", ())
        return names

    def instead_of(self, value: object) -> str:
        """What to do where other tools take `value` and this does not: the metadata `instead`."""
        sentences: Mapping[str, str] = self.attribute.metadata.get("instead", {})
        return sentences.get(value, "") if isinstance(value, str) else ""


@cache
def fields_of(cls: type) -> Mapping[str, Field]:
    """Every field of a class of attrs, by name."""
    annotations = typing.get_type_hints(cls)
    return {
        attribute.name: Field(cls, attribute, kind_of(annotations.get(attribute.name, Any)))
        for attribute in attrs.fields(cls)
    }


@cache
def keys_of(cls: type) -> Mapping[str, Field]:
    """The legal keys of a table; fields that core fills in are none."""
    return {
        name: field
        for name, field in fields_of(cls).items()
        if field.attribute.init and field.attribute.metadata.get("file", True)
    }
