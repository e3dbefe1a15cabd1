"""Every character of Unicode, in both engines: those that are trusted are normalised and split alike."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpctrain_tokens import cuts, letters
from tests.data.conftest import Make, need

TODHRI = "\U000105d2"
"""A letter of Unicode 16 that an old mark is put together with."""

PATTERNS = {"gpt-2": "", "llama-3": cuts.PATTERNS[0], "qwen-2": cuts.PATTERNS[1]}


MIXED = "    \n\n\r\t\x1c\u00a0\u0301\u1100\u1161,,.''(sdtaA1\u00e9\u4e2d\u00b2\u0600\U0001f680"


def split(pattern: str) -> dict[str, Any]:
    """The part of a tokenizer that splits with this expression, or as GPT-2 does."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": not pattern}
    if not pattern:
        return level
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [step, level]}


@pytest.fixture
def plan(tokenizer: Path) -> dict[str, Any]:
    """A tokenizer as JSON."""
    need("gigatoken")
    made: dict[str, Any] = json.loads((tokenizer / "tokenizer.json").read_text())
    return made


def probe(plan: dict[str, Any]) -> letters.Probe:
    import gigatoken

    return letters.Probe(plan, gigatoken.gigatoken_rs.load_hf_json, compared=True)


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 29])
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_every_character_is_split_alike(plan: dict[str, Any], pattern: str, step: int) -> None:
    """What lets `Probe` pass over characters with these splitters."""
    found = probe({**plan, "pre_tokenizer": split(pattern), "normalizer": {"type": "NFC"}})
    assert found._is_known_splitter
    every = [chr(c) for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000]
    known = [c for c in every if unicodedata.category(c) not in ("Cn", "Co") and letters.settled(c)]
    assert len(known) > 130_000
    assert [hex(ord(c)) for c in known[::step] if not found._split_alike(c)] == []


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_probe_shows_what_a_character_is(plan: dict[str, Any], pattern: str) -> None:
    """Were one engine to take a letter for a sign, its numbers of the probe would be others."""
    one, _ = probe({**plan, "pre_tokenizer": split(pattern)})._engines
    kinds = {"letter": "\u00e9", "number": "\u00b2", "sign": "\u00d7", "space": "\u00a0"}
    joins = {
        kind: [end - start for start, end in one.encode(letters.around(letter)).offsets]
        for kind, letter in kinds.items()
    }
    assert len({str(widths) for widths in joins.values()}) == len(kinds)


def test_young_characters_that_change_are_not_settled() -> None:
    assert letters.settled("\u00e9")
    assert letters.settled("\U0001f680"), "no version has anything to put it together with"
    assert not letters.settled("\u07fd"), "a mark, younger than some tables"
    assert not letters.settled("\U00011099") or "\U00011099" not in letters._parts()
    assert not letters.settled(TODHRI), "unknown to this Python, or a part of another letter"


def test_where_characters_stand_that_others_are_made_of() -> None:
    made = map(unicodedata.decomposition, map(chr, range(0x110000)))
    parts = {chr(int(part, 16)) for m in made if m and m[0] != "<" for part in m.split()}
    assert letters._parts() == parts


def test_words_that_are_no_bytes_trust_nothing(plan: dict[str, Any]) -> None:
    found = probe({**plan, "pre_tokenizer": {"type": "Metaspace"}})
    assert found.compare(["\u00e9", "\u4e2d"]) == [False, False]


def test_an_unknown_splitter_is_asked_for_each(plan: dict[str, Any]) -> None:
    found = probe({**plan, "pre_tokenizer": split(r"\p{Lu}?\p{Ll}+|\p{N}|\s+|[^\s\p{L}\p{N}]+|\p{L}")})
    assert not found._is_known_splitter


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({}, True),
        ({"normalizer": {"type": "NFC"}}, True),
        ({"normalizer": {"type": "Lowercase"}}, False),
        ({"pre_tokenizer": split(cuts.PATTERNS[0])}, True),
        ({"pre_tokenizer": split(r"\s+\w+")}, False),
        ({"pre_tokenizer": {"type": "Metaspace"}}, False),
        ({"added_tokens": [{"content": "a b"}]}, False),
        ({"added_tokens": [{"content": "<x>", "rstrip": True}]}, False),
    ],
)
def test_where_long_rows_may_be_cut(plan: dict[str, Any], change: dict[str, Any], allowed: bool) -> None:
    assert cuts.allowed({**plan, **change}) is allowed


def test_cuts_give_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LONG", 40)
    text = "some words, and 12 more\nof them  \n" * 9
    parts = [text[part] for part in cuts.cut(text, 40, sure=True)]
    assert "".join(parts) == text
    assert len(parts) > 5
    assert max(map(len, parts)) <= 40
    assert cuts.cut("x" * 100, 40, sure=True) == [], "nowhere to cut"
    assert cuts.cut("x" * 30, 10, sure=True) == [slice(0, None)], "nor here, but it is not long"
    assert cuts.cut(text, 40, sure=False) == []
    assert cuts.cut("short", 40, sure=False) == [slice(0, None)]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_cut_texts_have_the_numbers_of_the_whole(
    make_tokenizer: Make, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    from tokenizers import Tokenizer

    folder = make_tokenizer("cut")
    plan = json.loads((folder / "tokenizer.json").read_text())
    plan |= {"pre_tokenizer": split(pattern), "normalizer": {"type": "NFC"}}
    engine = Tokenizer.from_str(json.dumps(plan))
    monkeypatch.setattr(cuts, "LONG", 400)
    text = "it's  a\n\n\te\u0301 don't 1234 \u00e9 x \u0301y the  fox\n(jumps) a1 \r\n" * 150
    parts = [text[part] for part in cuts.cut(text, 400, sure=cuts.allowed(plan))]
    assert len(parts) > 10
    assert [n for part in parts for n in engine.encode(part).ids] == engine.encode(text).ids
    monkeypatch.setattr(cuts, "LONG", 60)
    cut = 0
    for text in mixed(400):
        parts = [text[part] for part in cuts.cut(text, 2, sure=True)] or [text]
        cut += len(parts)
        assert [n for part in parts for n in engine.encode(part).ids] == engine.encode(text).ids, parts
    assert cut > 400 * 10


def mixed(count: int) -> Iterator[str]:
    """Texts in which everything that a splitter tells apart stands beside everything else."""
    chance = random.Random(3)
    for _ in range(count):
        yield "".join(chance.choices(MIXED, k=150))
