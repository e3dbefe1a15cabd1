"""Every shape of an annotation is taken apart as its readers need it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Optional, Union

import attrs
import pytest

from hpctrain.model.duration import Duration
from hpctrain.model.fields import Form, Kind, fields_of, keys_of, kind_of
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.words import Word


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen(kw_only=True)
class Base:
    first: int
    """The first."""


@attrs.frozen(kw_only=True)
class Thing(Base):
    second: Thing | None = None
    hidden: str = attrs.field(default="", metadata={"file": False})
    about: str = attrs.field(default="x", metadata={"about": "By metadata.", "also": ("regarding",)})
    many: tuple[str, ...] = attrs.field(factory=tuple)


@pytest.mark.parametrize(
    ("annotation", "form", "parts"),
    [
        (Any, Form.ANYTHING, ()),
        (str, Form.PLAIN, ()),
        (Duration, Form.PLAIN, ()),
        (Colour, Form.CHOICE, ()),
        (Literal["a", 1], Form.CHOICE, ()),
        (Thing, Form.TABLE, ()),
        (tuple[int, ...], Form.MANY, (int,)),
        (list[Thing], Form.MANY, (Thing,)),
        (frozenset[Colour], Form.MANY, (Colour,)),
        (Mapping[str, bool], Form.MAPPING, (bool,)),
        (dict[str, bool], Form.MAPPING, (bool,)),
        (int | tuple[int, ...], Form.UNION, (int, tuple[int, ...])),
        (tuple[str, int], Form.FOREIGN, ()),
        (Path, Form.FOREIGN, ()),
        (dict, Form.FOREIGN, ()),
    ],
)
def test_forms(annotation: Any, form: Form, parts: tuple[Any, ...]) -> None:
    kind = kind_of(annotation)
    assert (kind.form, kind.type, kind.optional) == (form, annotation, False)
    assert tuple(part.type for part in kind.parts) == parts


@pytest.mark.parametrize("annotation", [int | None, Optional[int], Union[None, int]])  # noqa: UP007, UP045
def test_optional(annotation: Any) -> None:
    assert kind_of(annotation) == Kind(Form.PLAIN, int, optional=True)


def test_a_union_is_known_by_its_alias_with_and_without_none() -> None:
    kinds = {name: field.kind for name, field in fields_of(EnvVar).items()}
    assert kinds["value"].type == Word
    assert kind_of(Union[Word, None]).type == Word  # noqa: UP007
    assert kind_of(Union[Word, None]).optional  # noqa: UP007


def test_fields() -> None:
    fields = fields_of(Thing)
    assert [field.name for field in fields.values()] == ["first", "second", "hidden", "about", "many"]
    assert [name for name, field in fields.items() if field.required] == ["first"]
    assert [field.default for field in fields.values()] == [None, None, None, "x", None]
    assert [field.doc for field in fields.values()] == ["The first.", "", "", "By metadata.", ""]
    assert fields["second"].kind == Kind(Form.TABLE, Thing, optional=True)
    assert fields["about"].synonyms == ("regarding",)
    assert "hidden" not in keys_of(Thing)


def test_an_annotation_stays_as_it_is_written_though_somebody_resolves_it() -> None:
    attrs.resolve_types(Layer)
    assert fields_of(Layer)["ask"].annotation == "SchedulerWords"
