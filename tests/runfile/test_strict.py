"""No coercion, every mistake at once, and the right way in the hint."""

from __future__ import annotations

import enum
import random
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from hpctrain.model.cluster import Cluster
from hpctrain.model.duration import Duration
from hpctrain.model.fields import Form, Kind, keys_of, kind_of
from hpctrain.model.run import Package, RunSpec
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.keys import nearest


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen(kw_only=True)
class Inner:
    n: int
    by_core: str = attrs.field(default="", metadata={"file": False})


@attrs.frozen(kw_only=True)
class Thing:
    b: bool = False
    i: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    f: float = 1.0
    s: str = ""
    d: Duration | None = None
    many: tuple[str, ...] = ()
    some: frozenset[Colour] = frozenset()
    by: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    word: Literal["", "one", "two"] = ""
    either: int | tuple[int, ...] = 0
    inner: Inner | None = None
    package: Package | None = None
    free: Any = None


def one(**data: Any) -> tuple[str, str, str]:
    """Code, message and hint of the only fault."""
    value, faults = Strict()(data, Thing)
    assert value is None
    (fault,) = faults
    problem = fault.problem(None)
    return problem.code, problem.message, problem.hint


def test_right_values_pass() -> None:
    data = {
        "b": True,
        "i": 2,
        "f": 3,
        "s": "x",
        "d": "90m",
        "many": ["a"],
        "some": ["red", "blue"],
        "by": {"x": [1]},
        "word": "two",
        "either": [1, 2],
        "inner": {"n": 1},
        "package": "trl[peft]==0.23.1",
        "free": {"x": [1]},
    }
    thing, faults = Strict()(data, Thing)
    assert faults == ()
    assert thing == Thing(
        b=True,
        i=2,
        f=3.0,
        s="x",
        d=Duration(5400),
        many=("a",),
        some=frozenset(Colour),
        by={"x": (1,)},
        word="two",
        either=(1, 2),
        inner=Inner(n=1),
        package=Package(name="trl", requirement="trl[peft]==0.23.1"),
        free={"x": [1]},
    )
    assert type(thing.f) is float


def test_cattrs_reads_types_of_somebody_else_with_our_readers_inside() -> None:
    @attrs.frozen
    class Foreign:
        path: Path
        rows: list[Inner]
        pair: tuple[str, Inner]

    data = {"path": "/a", "rows": [{"n": 1}], "pair": ["x", {"n": 2}]}
    assert Strict()(data, Foreign) == (Foreign(Path("/a"), [Inner(n=1)], ("x", Inner(n=2))), ())
    wrong = {"path": 1, "rows": [{"n": "1"}, {"n": 1.5}], "pair": [1, {"n": 2}]}
    _, faults = Strict()(wrong, Foreign)
    assert [(fault.code, fault.path) for fault in faults] == [
        ("wrong-value", ("path",)),
        ("wrong-type", ("rows", 0, "n")),
        ("wrong-type", ("rows", 1, "n")),
        ("wrong-type", ("pair",)),
    ]
    assert faults[0].complaint.startswith("is 1; a Path is needed (")


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ({"b": "no"}, 'b is "no", a string; true or false is needed', "b = false"),
        ({"b": 1}, "b is 1, a bare number; true or false is needed", ""),
        ({"i": "2"}, 'i is "2", a string; a whole number is needed', "i = 2"),
        ({"i": 2.0}, "i is 2.0, a bare number; a whole number is needed", "i = 2"),
        ({"i": 2.7}, "i is 2.7, a bare number; a whole number is needed", ""),
        ({"i": True}, "i is true, a truth value; a whole number is needed", ""),
        ({"f": "1e-4"}, 'f is "1e-4", a string; a number is needed', "f = 0.0001"),
        ({"f": True}, "f is true, a truth value; a number is needed", ""),
        ({"s": 3}, "s is 3, a bare number; a string is needed", 's = "3"'),
        ({"s": ["x"]}, "s is an array; a string is needed", ""),
        ({"many": "abc"}, 'many is "abc", a string; an array is needed', 'many = ["abc"]'),
        ({"many": ["a", 1]}, "many[1] is 1, a bare number; a string is needed", '"1"'),
        ({"by": []}, "by is an array; a table is needed", ""),
        ({"by": {"x y": [1.5]}}, '"x y"[0] is 1.5, a bare number; a whole number is needed', ""),
        ({"d": 90}, "d is 90, a bare number; a duration is needed", 'd = "90m"      also "1:30:00", "2d"'),
        ({"either": "x"}, 'either is "x", a string; a whole number or an array is needed', ""),
        ({"either": ["x"]}, 'either[0] is "x", a string; a whole number is needed', ""),
        ({"inner": 1}, "inner is 1, a bare number; a table is needed", ""),
        ({"package": 1}, "package is 1, a bare number; a table or a string is needed", ""),
    ],
)
def test_wrong_type(data: dict[str, Any], message: str, hint: str) -> None:
    assert one(**data) == ("wrong-type", message, hint)


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ({"i": 0}, "i is 0; must be >= 1", ""),
        ({"f": float("nan")}, "f is nan; a finite number is needed", ""),
        ({"word": "on"}, 'word is "on"; one or two is needed', 'word = "one"'),
        ({"some": ["rde"]}, 'some[0] is "rde"; red or blue is needed', '"red"'),
        ({"package": "-e ."}, 'package is "-e ."; a package such as "trl==0.23.1" is needed', ""),
    ],
)
def test_wrong_value(data: dict[str, Any], message: str, hint: str) -> None:
    assert one(**data) == ("wrong-value", message, hint)


@pytest.mark.parametrize("text", ["25:00:99", "0", "-1", "90", "", "1h x"])
def test_durations(text: str) -> None:
    code, message, hint = one(d=text)
    assert (code, message) == ("wrong-value", f'd is "{text}"; a duration is needed')
    assert hint == 'd = "90m"      also "1:30:00", "2d"'


def test_no_time_at_all() -> None:
    assert one(d="0m")[1] == 'd is "0m"; more than zero is needed'


def test_all_at_once_and_nested() -> None:
    data = {"i": "1", "inner": {"by_core": "x"}, "some": ["red", "x", 1], "zz": 1}
    _, faults = Strict()(data, Thing)
    found = {fault.path: fault.code for fault in faults}
    assert found == {
        ("i",): "wrong-type",
        ("inner", "n"): "missing-key",
        ("inner", "by_core"): "unknown-key",
        ("some", 1): "wrong-value",
        ("some", 2): "wrong-value",
        ("zz",): "unknown-key",
    }


def test_a_choice_keeps_the_order_of_its_own_class() -> None:
    """Python takes the two annotations for the same."""

    @attrs.frozen
    class Forth:
        word: Literal["one", "two"]

    @attrs.frozen
    class Back:
        word: Literal["two", "one"]

    for cls, words in ((Forth, "one or two"), (Back, "two or one")):
        _, (fault,) = Strict()({"word": "3"}, cls)
        assert fault.complaint == f'is "3"; {words} is needed'


def test_hidden_fields_are_no_keys() -> None:
    assert "options" not in keys_of(keys_of(RunSpec)["train"].kind.type)
    assert "inputs" not in keys_of(RunSpec)


def legal_tables() -> list[tuple[str, ...]]:
    """The keys of every table of a run file and of cluster.toml."""
    tables: list[tuple[str, ...]] = []
    todo: list[Kind] = [kind_of(RunSpec), kind_of(Cluster)]
    while todo:
        kind = todo.pop()
        if kind.form is Form.TABLE:
            tables.append(tuple(keys_of(kind.type)))
            todo += [field.kind for field in keys_of(kind.type).values()]
        todo += kind.parts
    return tables


def one_edit(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word))
    letter = rng.choice(string.ascii_lowercase)
    edits = [word[:at] + letter + word[at:], word[:at] + letter + word[at + 1 :]]
    edits.append(word[:at] + word[at + 1 :])
    edits.append(word[:at] + word[at : at + 2][::-1] + word[at + 2 :])
    return rng.choice(edits)


def test_the_right_key_is_suggested() -> None:
    rng = random.Random(20)
    tables = legal_tables()
    right = tried = 0
    while tried < 200:
        table = rng.choice(tables)
        word = rng.choice(table)
        typo = one_edit(word, rng)
        if typo and typo not in table:
            near = nearest(typo, table)
            assert len(near) <= 3
            right += word in near
            tried += 1
    assert right >= 190
