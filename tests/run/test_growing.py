"""Logs of any size and shape: read as they grow, with little memory and each byte once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.output import growing, logs
from hpctrain.run.output.growing import Growing


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


@given(pieces=st.lists(st.text("ab\n", max_size=9), max_size=9))
def test_every_line_is_shown_once_whatever_the_pieces(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    path = tmp_path_factory.mktemp("log") / "train.log"
    reader, lines = Growing(path), []
    for piece in pieces:
        with path.open("a") as file:
            file.write(piece)
        lines += reader.lines()
    assert lines + reader.torn_end() == "".join(pieces).removesuffix("\n").split("\n") * bool("".join(pieces))


def test_a_line_that_nobody_ends_fills_no_memory_and_is_read_once(log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(1 << 30)  # a gigabyte of nothing, which takes no room on the disk
        file.seek(0, 2)
        file.write(b"the end")
    tracemalloc.start()
    reader = Growing(log)
    assert reader.lines() == []
    assert reader.position == (1 << 30) + 7
    assert tracemalloc.get_traced_memory()[1] < 8 * growing.LONGEST
    tracemalloc.stop()
    assert reader.lines() == []
    with log.open("a") as file:
        file.write("\nnext\n")
    giant, following = reader.lines()
    assert (giant.endswith("the end"), len(giant), following) == (True, growing.LONGEST, "next")
    assert len(logs.last_lines(log, 2)) == 2


def test_a_log_that_was_emptied_is_read_from_its_beginning(log: Path) -> None:
    log.write_text("old\nold\n")
    reader = Growing(log)
    assert reader.lines() == ["old", "old"]
    log.write_text("new\n")
    assert reader.lines() == ["new"]
    log.unlink()
    assert reader.lines() == []


def test_following_a_run_ends_with_its_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory(tmp_path)
    directory.logs.mkdir()
    path = directory.log("train")
    path.write_text("one\ntwo\nthr")
    states = iter([State.RUNNING, State.RUNNING, State.DONE])
    monkeypatch.setattr(logs, "TICK_SECONDS", 0)
    shown = []
    for lines in logs.follow(directory, ["train"], lambda: {"train": next(states)}, lines=2):
        shown.append(lines)
        if len(shown) == 1:
            path.write_text("one\ntwo\nthree\nfo")
    assert shown == [["two"], ["three"], ["fo"]]
