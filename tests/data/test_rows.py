"""Many rows at once: the same texts as row by row, and where a key may stand twice nobody is passed over."""

from __future__ import annotations

import json

import pytest

from hpctrain_tokens.faults import RowError
from hpctrain_tokens.jsonrows import parse, plain
from hpctrain_tokens.pieces import Lines, Row
from tests.data.conftest import need

GOOD = b'{"text": "one"}\n{"text":"caf\\u00e9 \\u0041 \\"text\\": \\\\u0041"}\n{"text":  "say \\"text" }\n'
ESCAPED = rb'{"t\u0065xt": "b"}'

JUDGED = {
    "twice": b'{"text": "a", "text": "b"}',
    "twice, far apart": b'{"text": "' + b"x" * 3000 + b'", "text": "b"}',
    "escaped behind": rb'{"text": "a", "t\u0065xt": "b"}',
    "escaped before": rb'{"t\u0065xt": "b", "text": "a"}',
    "all letters escaped": rb'{"text": "a", "\u0074\u0065\u0078\u0074" : "b"}',
    "big digits": rb'{"text": "a", "te\u0078t"' + b"\t:" + rb' "b"}',
}
OTHERS = {
    "escaped alone": ESCAPED,
    "another key": b'{"text": "a", "id": 1}',
    "another key first": b'{"id": 1, "text": "a"}',
    "begun otherwise": b'{ "text": "a"}',
    "inside": b'{"text": {"text": "a"}}',
    "not text": b'{"text": 5}',
    "a list": b'["text"]',
    "blank": b"",
    "cut": b'{"text": "a',
    "cut behind the text": b'{"text": "a"',
    "cut into two": b'{"text": "a"\n}',
    "two texts": b'{"text": "a", "b"}',
    "closed twice": b'{"text": "a"}}',
    "two rows": b'{"text": "a"}{"text": "b"}',
    "nothing": b'{"text":}',
    "no colon": b'{"text" "a:b"}',
    "space before the colon": b'{"text" : "a"}',
    "space at its end": b'{"text": "a"} ',
    "another end of a line": b'{"text": "a"}\r\n',
    "a letter that is no UTF-8": b'{"text": "\xff"}',
    "half": rb'{"text": "\ud800"}',
}


def lines(*rows: bytes) -> Lines:
    return Lines(0, b"".join(row if row.endswith(b"\n") else row + b"\n" for row in rows))


def test_the_same_texts() -> None:
    need("orjson")
    rows = lines(GOOD)
    assert plain(rows, "text") == [parse(row)["text"] for row in rows]


@pytest.mark.parametrize("row", JUDGED.values(), ids=JUDGED)
def test_a_key_that_stands_twice(row: bytes) -> None:
    """In one go it is left to the judge, who sees it whatever is written how."""
    assert plain(lines(GOOD, row, GOOD), "text") is None
    with pytest.raises(RowError, match='key "text" appears twice'):
        parse(Row(1, row))


@pytest.mark.parametrize("row", OTHERS.values(), ids=OTHERS)
def test_what_is_not_plain_is_judged_by_row(row: bytes) -> None:
    assert plain(lines(GOOD, row, GOOD), "text") is None


def test_an_escaped_row_does_not_hide_one_that_stands_twice() -> None:
    """One row without the plain key and one with two: as many keys as rows."""
    assert plain(lines(ESCAPED, JUDGED["twice"]), "text") is None


@pytest.mark.parametrize("name", ["a b", "\u00e9", "", 'a"b'])
def test_names_that_can_be_written_in_other_ways(name: str) -> None:
    assert plain(lines(json.dumps({name: "a"}).encode()), name) is None


def test_flat_rows_with_more_keys_are_read_alike() -> None:
    need("orjson")
    row = rb'{"text": "a\u00e9", "id": 7, "ok": true, "none": null, "x": 1.5}'
    assert parse(Row(1, row)) == json.loads(row)
    for twice in (rb'{"text": "a", "id": 1, "id": 2}', rb'{"id": 1, "text": "a", "\u0069d": 2}'):
        with pytest.raises(RowError, match='key "id" appears twice'):
            parse(Row(1, twice))
