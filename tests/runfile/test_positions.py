"""The scanner finds what the parser found, where it stands."""

from __future__ import annotations

import string
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.runfile.keys import Keys
from hpctrain.runfile.reading.positions import scan
from hpctrain.runfile.reading.text import parse_toml
from hpctrain.runfile.reading.toml import loads


def leaves(value: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path, value


def check(text: str) -> int:
    """Each leaf's span holds exactly its value, and its key span its key."""
    text = text.replace("\r\n", "\n")
    places = scan(text)
    count = 0
    for path, value in leaves(loads(text)):
        place = places[path]
        said = text[slice(*place.value)]
        if value != {} or said.startswith("{"):
            assert loads(f"x = {said}")["x"] == value or value != value
        if isinstance(path[-1], str):
            key = text[slice(*place.key)]
            assert list(loads(f"{key} = 1")) == [path[-1]]
        count += 1
    return count


def test_files_of_this_machine() -> None:
    checkout = Path(__file__).parents[2]
    own = {f for f in checkout.rglob("*.toml") if not any(p[0] == "." for p in f.relative_to(checkout).parts)}
    files = sorted(own | set(Path(sysconfig.get_path("purelib")).rglob("*.toml")))
    seen = sum(check(file.read_text()) for file in files)
    assert seen > 100


WORDS = st.text("ab-_" + string.digits, min_size=1, max_size=3)
QUOTED = st.text('ab .]=#é"\\', max_size=3).map(
    lambda t: '"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
KEYS = WORDS | QUOTED | st.text('ab .]=#"', max_size=3).map(lambda t: f"'{t}'")
SPACE = st.sampled_from(["", " ", "  ", "\t"])
BLANK = st.sampled_from(["", " ", "\n", "  # [x] = '\n", "\n\t\n"])
SCALARS = st.sampled_from(
    ["1", "-0x1F".removeprefix("-"), "1_000", "1e5", "-inf", "true", "false"]
    + ["1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "07:32:00", "1979-05-27"]
    + ['"""a\n"b" ""c"""""', "'''x\n''y'''''", '"""\\\n  z"""', '"\\"]#"', "'\\'", '""', "''"]
)


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    item = st.tuples(BLANK, inner, BLANK).map("".join)
    tail = st.sampled_from(["", ",", ", # x ]\n"])
    return st.tuples(st.lists(item, max_size=3), tail).map(
        lambda t: "[" + ",".join(t[0]) + (t[1] if t[0] else "") + "]"
    )


def tables(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(SPACE, dotted(), SPACE, st.just("="), SPACE, inner, SPACE).map("".join)
    return st.lists(pair, max_size=3).map(lambda pairs: "{" + ",".join(pairs) + "}")


def dotted() -> st.SearchStrategy[str]:
    return st.lists(KEYS, min_size=1, max_size=3).map(" . ".join)


VALUES = st.recursive(SCALARS, lambda inner: arrays(inner) | tables(inner), max_leaves=5)
LINES = st.one_of(
    st.tuples(SPACE, dotted(), SPACE, st.just("="), SPACE, VALUES).map("".join),
    dotted().map(lambda key: f"[{key}]  # table"),
    dotted().map(lambda key: f"[[ {key} ]]"),
    st.just("# comment [a]"),
    st.just(""),
)


@settings(max_examples=300, derandomize=True)
@given(st.lists(LINES, max_size=8))
def test_generated(lines: list[str]) -> None:
    check(kept(lines))


def kept(lines: list[str]) -> str:
    text = ""
    for line in lines:  # keep the lines that TOML takes together with those before
        try:
            loads(f"{text}{line}\n")
        except ValueError:
            continue
        text += f"{line}\n"
    return text


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        (("a",), False, (1, 5, 6, "a = 1")),
        (("b", "c"), True, (2, 4, 5, "[b.c]")),
        (("b", "c", "d"), False, (3, 5, 10, 'd = """x\\')),
        (("rows", 1, "e"), False, (7, 5, 6, "e = 2")),
        (("rows", 1, "gone"), False, (6, 3, 7, "[[rows]]")),
        (("nothing",), False, (1, 1, None, "")),
    ],
)
def test_spans(path: Keys, key: bool, expected: tuple[int, int, int | None, str]) -> None:
    text = 'a = 1\n[b.c]\nd = """x\\\ny"""\n[[rows]]\n[[rows]]\ne = 2\n'
    span = parse_toml(text, "f").span(path, key=key)
    line, column, end, said = expected
    assert (span.line, span.column, span.end) == (line, column, end)
    assert span.text.startswith(said)
