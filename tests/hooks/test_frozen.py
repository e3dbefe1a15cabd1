"""Values of the model are made, changed, compared and shown as those of attrs are."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest

from hpctrain.model.frozen import frozen
from hpctrain.model.layer import Module
from hpctrain.model.words import Loc


def example(decorate: Any) -> Any:
    """The same class by attrs and by us."""

    class Thing:
        name: str
        many: tuple[str, ...] = ()
        count: int = attrs.field(default=1, validator=attrs.validators.ge(1), metadata={"about": "a number"})
        table: Mapping[str, int] = attrs.field(factory=dict)
        note: str = attrs.field(default="", eq=False, repr=False)

    return decorate(Thing)


OURS, THEIRS = example(frozen), example(attrs.frozen(slots=False))
RIGHT: list[Callable[[Any], Any]] = [
    lambda cls: cls("a"),
    lambda cls: cls("a", ("b",), count=2),
    lambda cls: cls(name="a", table={"x": 1}, note="n"),
    lambda cls: attrs.evolve(cls("a"), many=("c",)),
    lambda cls: copy.copy(cls("a", note="n")),
]
WRONG: list[Callable[[Any], Any]] = [
    lambda cls: cls(),
    lambda cls: cls("a", nmae="b"),
    lambda cls: cls("a", name="b"),
    lambda cls: cls("a", (), 1, {}, "", 6),
    lambda cls: cls("a", count=0),
    lambda cls: attrs.evolve(cls("a"), nmae="b"),
    lambda cls: setattr(cls("a"), "name", "b"),
    lambda cls: delattr(cls("a"), "name"),
    lambda cls: cls.name,
]


@pytest.mark.parametrize("make", RIGHT)
def test_right(make: Callable[[Any], Any]) -> None:
    ours, theirs = make(OURS), make(THEIRS)
    assert attrs.asdict(ours) == attrs.asdict(theirs)
    assert repr(ours).rpartition(".")[2] == repr(theirs).rpartition(".")[2]
    assert (ours == make(OURS)) is (theirs == make(THEIRS)) is True
    assert ours != OURS("z")
    assert ours != theirs


@pytest.mark.parametrize("make", WRONG)
def test_wrong(make: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as theirs:
        make(THEIRS)
    with pytest.raises(theirs.type):
        make(OURS)


def test_fields() -> None:
    ours, theirs = attrs.fields(OURS), attrs.fields(THEIRS)
    said = ("name", "alias", "default", "validator", "kw_only", "metadata", "type", "eq", "repr")
    assert [[getattr(f, s) for s in said] for f in ours] == [[getattr(f, s) for s in said] for f in theirs]
    assert attrs.has(OURS)


def test_words_for_what_is_wrong() -> None:
    loc: Any = Loc
    for make, said in (
        (loc, "Loc() needs role"),
        (lambda: loc("a", roel="b"), "Loc() has no field roel"),
        (lambda: loc("a", role="b"), "Loc() is given role twice"),
        (lambda: loc("a", "b", "c"), "Loc() takes 2 values without a name, not 3"),
    ):
        with pytest.raises(TypeError, match=re.escape(said)):
            make()


def test_kept_and_matched() -> None:
    assert pickle.loads(pickle.dumps(Module("x", "use"))) == Module("x", "use")
    match Loc("env", "a"):
        case Loc(role, path):
            assert (role, path) == ("env", "a")


def test_a_class_is_finished_once_by_many_threads() -> None:
    for _ in range(50):
        cls = example(frozen)
        with ThreadPoolExecutor(8) as threads:
            assert {len(f.result()) for f in [threads.submit(attrs.fields, cls) for _ in range(8)]} == {5}


@pytest.mark.parametrize(
    "field",
    [
        attrs.field(init=False, default=1),
        attrs.field(converter=int),
        attrs.field(alias="y"),
        attrs.field(default=attrs.Factory(id, takes_self=True)),
    ],
)
def test_what_is_not_heeded_is_refused(field: Any) -> None:
    cls: Any = frozen(type("Thing", (), {"__annotations__": {"x": "int"}, "x": field}))
    with pytest.raises(AssertionError, match=r"decorate it with attrs\.frozen"):
        cls(1)
