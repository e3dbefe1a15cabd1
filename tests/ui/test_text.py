"""Cells, clipping and the words for numbers and times."""

from __future__ import annotations

import os
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain.ui import text

NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab /-東京한글é\u0301\u0308\u200d\ufe0f❤👩\u202e\u2066\n\t\r\x07\x00\x9b…→"),
        st.sampled_from("abc"),
        st.characters(),
    ),
    max_size=60,
)


def width_by_the_book(shown: str) -> int:
    """Cells counted from the character database alone, without the code under test."""
    total = 0
    for char in shown:
        if unicodedata.category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":
            continue
        if "\ud7b0" <= char <= "\ud7ff":
            continue
        total += 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
    return total


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("a\nb\tc\rd", "a b c d"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("bell\x07null\x00", "bellnull"),
        ("abc\u202edef\u2066g", "abcdefg"),
        ("lone \udc80 byte", "lone ? byte"),
        ("東京 é", "東京 é"),
        ("نم\u200cک", "نم\u200cک"),
        ("❤\ufe0f", "❤"),
        ("\x1b", ""),
        ("\x1b[", ""),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    assert text.clean(raw) == shown


@given(NASTY)
def test_clean_text_steers_nothing(raw: str) -> None:
    shown = text.clean(raw)
    for char in shown:
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in ("LRE", "RLE", "LRO", "RLO", "PDF")
        assert unicodedata.bidirectional(char) not in ("LRI", "RLI", "FSI", "PDI")
    assert text.clean(shown) == shown
    shown.encode()
    assert text.cells(shown) == width_by_the_book(shown)


@pytest.mark.parametrize(
    ("whole", "width", "clipped"),
    [
        ("short", 5, "short"),
        ("/lustre/orion/runs/guanaco", 15, "/lustre…guanaco"),
        ("abcdef", 4, "ab…f"),
        ("abcdef", 1, "…"),
        ("東京大阪名古屋", 8, "東京…屋"),
    ],
)
def test_clip(whole: str, width: int, clipped: str) -> None:
    assert text.clip(whole, width) == clipped


def test_clip_never_parts_a_mark_from_its_letter() -> None:
    whole = "aaaaaaaa" + "e\u0301" * 8
    for width in range(1, 17):
        clipped = text.clip(whole, width)
        assert "…\u0301" not in clipped
        assert text.cells(clipped) <= width


@given(NASTY, st.integers(1, 40), st.sampled_from(["…", ".."]))
def test_clip_fits_and_keeps_both_ends(raw: str, width: int, mark: str) -> None:
    whole = text.clean(raw)
    clipped = text.clip(whole, width, mark)
    assert text.cells(clipped) <= width
    if width_by_the_book(whole) <= width:
        assert clipped == whole
    elif width > len(mark):
        marks = (at for at in range(len(clipped)) if clipped.startswith(mark, at))
        parts = [(clipped[:at], clipped[at + len(mark) :]) for at in marks]
        assert any(whole.startswith(start) and whole.endswith(end) for start, end in parts)


@given(NASTY, st.integers(2, 40))
def test_wrap_loses_no_letter(raw: str, width: int) -> None:
    whole = text.clean(raw)
    lines = text.wrap(whole, width)
    assert all(text.cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(whole.split())


def test_wrap_breaks_at_spaces() -> None:
    assert text.wrap("one two  three", 8) == ["one two", "three"]
    assert text.wrap("aligned   by spaces", 40) == ["aligned   by spaces"]
    assert text.wrap("ab " + "x" * 9, 4) == ["ab", "xxxx", "xxxx", "x"]


def test_fold_touches_only_our_symbols() -> None:
    assert text.fold("a … b → c × ✓ ✗ 63° é") == "a .. b -> c x ok FAIL 63 é"  # noqa: RUF001


@pytest.mark.parametrize(
    ("seconds", "words", "rough"),
    [
        (0, "0s", "0s"),
        (41.9, "41s", "41s"),
        (60, "1m", "1m"),
        (61, "1m01s", "1m"),
        (192, "3m12s", "3m"),
        (240, "4m", "4m"),
        (3599, "59m59s", "1h"),
        (3600, "1h", "1h"),
        (5400, "1h30m", "1h30m"),
        (3720, "1h02m", "1h02m"),
        (86400, "1d", "1d"),
        (187200, "2d04h", "2d04h"),
        (-3, "0s", "0s"),
        (None, "?", "?"),
        (float("nan"), "?", "?"),
        (float("inf"), "?", "?"),
    ],
)
def test_duration(seconds: float | None, words: str, rough: str) -> None:
    assert text.duration(seconds) == words
    assert text.duration(seconds, rough=True) == rough


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("2026-10-07 14:00:00", "now"),
        ("2026-10-07 14:00:09", "now"),
        ("2026-10-07 13:59:19", "41s ago"),
        ("2026-10-07 13:55:00", "5m ago"),
        ("2026-10-07 13:00:01", "59m ago"),
        ("2026-10-07 00:30:00", "13h ago"),
        ("2026-10-06 23:00:00", "yesterday"),
        ("2026-10-06 14:00:00", "yesterday"),
        ("2026-10-06 00:00:01", "yesterday"),
        ("2026-10-05 23:00:00", "Mon 23:00"),
        ("2026-10-02 02:14:00", "Fri 02:14"),
        ("2026-10-01 02:14:00", "2026-10-01"),
        ("2025-12-24 18:00:00", "2025-12-24"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Oslo", "America/New_York"])
def test_age(then: str, words: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        at, now = (
            time.mktime(time.strptime(day, "%Y-%m-%d %H:%M:%S")) for day in (then, "2026-10-07 14:00:00")
        )
        assert text.age(at, now) == words
        assert text.age(None, now) == "?"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_yesterday_survives_the_change_of_clocks() -> None:
    saved = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Oslo"
    time.tzset()
    try:
        now = time.mktime((2026, 10, 26, 0, 30, 0, 0, 0, -1))  # the day before had 25 hours
        then = time.mktime((2026, 10, 25, 0, 15, 0, 0, 0, -1))
        assert text.age(then, now) == "yesterday"
    finally:
        os.environ.pop("TZ")
        if saved is not None:
            os.environ["TZ"] = saved
        time.tzset()


@pytest.mark.parametrize(
    ("bytes_", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_600, "1.0 MB"),
        (1_000_000, "1.0 MB"),
        (9_960_000, "10 MB"),
        (21e6, "21 MB"),
        (412e6, "412 MB"),
        (999.6e6, "1.0 GB"),
        (16.1e9, "16.1 GB"),
        (47.2e12, "47.2 TB"),
        (3.5e15, "3.5 PB"),
        (None, "?"),
    ],
)
def test_size(bytes_: float | None, words: str) -> None:
    assert text.size(bytes_) == words


def test_size_of_uses_one_unit() -> None:
    assert text.size_of(10.2e9, 16.1e9) == "10.2 of 16.1 GB"
    assert text.size_of(4e6, 16.1e9) == "0.0 of 16.1 GB"


@pytest.mark.parametrize(
    ("value", "counted", "amounted", "shortened"),
    [
        (0, "0", "0", "0"),
        (255, "255", "255", "255"),
        (6000, "6,000", "6,000", "6k"),
        (14_802, "14,802", "14,802", "14.8k"),
        (48_100, "48,100", "48,100", "48.1k"),
        (274_112, "274,112", "0.3 M", "274k"),
        (800_000, "800,000", "0.8 M", "800k"),
        (999_900, "999,900", "1.00 M", "1M"),
        (41_900_000, "41,900,000", "41.9 M", "41.9M"),
        (8_030_000_000, "8,030,000,000", "8.03 B", "8.03B"),
        (1_200_000_000_000, "1,200,000,000,000", "1.20 T", "1T"),
        (None, "?", "?", "?"),
    ],
)
def test_counts(value: int | None, counted: str, amounted: str, shortened: str) -> None:
    assert text.count(value) == counted
    assert text.amount(value) == amounted
    assert text.short(value) == shortened


def test_percent() -> None:
    assert text.percent(0.3) == "30 %"
    assert text.percent(0.3, narrow=True) == "30%"
    assert text.percent(0.0052, places=2) == "0.52 %"
    assert text.percent(None) == "?"
    assert text.percent(float("nan")) == "?"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.2144, "1.214"),
        (0.08, "0.08000"),
        (1912, "1,912"),
        (98765.4, "98,765"),
        (1.4e-4, "1.4e-4"),
        (-2.5, "-2.500"),
        (0.0, "0"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (3.2e38, "3.2e38"),
        (None, "?"),
    ],
)
def test_number(value: float | None, words: str) -> None:
    assert text.number(value) == words
