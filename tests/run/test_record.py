"""Append-only lines: what a crash, a newer version or many writers do to them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hpctrain import versions
from hpctrain.errors import ConfigError
from hpctrain.run.disk.record import Record
from tests.run.conftest import python


def test_events_come_back_in_order_with_time_and_version(tmp_path: Path) -> None:
    record = Record(tmp_path / "r")
    record.append("planned", digest="abc")
    record.append("ended", code=0)
    first, second = record.read()
    assert first["v"] == versions.RECORD
    assert (first["event"], first["digest"], second["code"]) == ("planned", "abc", 0)
    time = datetime.fromisoformat(first["time"].replace("Z", "+00:00"))
    assert abs(datetime.now(timezone.utc) - time) < timedelta(minutes=1)


def test_no_record_yet_is_no_events(tmp_path: Path) -> None:
    assert Record(tmp_path / "r").read() == []


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    record = Record(tmp_path / "r")
    record.append("x", loss=float("nan"), deep={"a": [float("inf"), 1.5]})
    assert "NaN" not in record.path.read_text()
    assert record.read()[0] | {"time": ""} == {
        "v": 1, "time": "", "event": "x", "loss": None, "deep": {"a": [None, 1.5]},
    }  # fmt: skip


def test_any_text_is_one_line(tmp_path: Path) -> None:
    record = Record(tmp_path / "r")
    nasty = "a\nb\r\x00\u2028\ud800ü"
    record.append("x", text=nasty)
    assert record.path.read_bytes().count(b"\n") == 1
    assert record.read()[0]["text"] == nasty.replace("\ud800", "?")


def test_the_records_own_fields_cannot_be_taken(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="'time'"):
        Record(tmp_path / "r").append("x", time="yesterday")


@pytest.mark.parametrize("torn", range(1, 60))
def test_every_torn_last_line_is_left_out_and_hurts_no_other(tmp_path: Path, torn: int) -> None:
    record = Record(tmp_path / "r")
    record.append("one", text="ü" * 20)
    whole = record.path.read_bytes()
    record.path.write_bytes(whole + whole[: min(torn, len(whole) - 1)])
    assert [e["event"] for e in record.read()] == ["one"]
    record.append("two")
    assert [e["event"] for e in record.read()] == ["one", "two"]


def test_a_newer_record_is_refused(tmp_path: Path) -> None:
    record = Record(tmp_path / "r")
    record.append("x")
    record.path.write_text(json.dumps({"v": versions.RECORD + 1, "event": "x"}) + "\n")
    with pytest.raises(ConfigError, match="written by a newer hpctrain") as caught:
        record.read()
    assert caught.value.problems[0].code == "newer-record"


WRITER = """
import sys
from pathlib import Path
from hpctrain.run.disk.record import Record
for n in range(200):
    Record(Path(sys.argv[1])).append("x", who=sys.argv[2], n=n, filler="y" * (n * 37 % 4000))
"""


def test_lines_of_several_writers_never_mix(tmp_path: Path) -> None:
    writers = [python(WRITER, tmp_path / "r", who) for who in "abc"]
    assert [w.communicate(timeout=60)[1] for w in writers] == [""] * 3
    entries = Record(tmp_path / "r").read()
    assert len(entries) == 600
    for who in "abc":
        assert [e["n"] for e in entries if e["who"] == who] == list(range(200))
