"""Ranks come from the environment, and what would mislead the libraries is mended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hpctrain_trl import environment
from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.fields import split_of

MASTER = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "12345"}


def test_ranks_of_a_world() -> None:
    env = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", **MASTER}
    assert environment.ranks(env) == Ranks(3, 1, 4)
    assert not Ranks(3, 1, 4).first


def test_one_rank_needs_no_process_group() -> None:
    env = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "KEPT": "1"}
    assert environment.ranks(env) == Ranks(0, 0, 1)
    assert env == {"KEPT": "1"}
    assert environment.ranks({}).first


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"RANK": "x"}, "must be numbers"),
        ({"RANK": "2", "WORLD_SIZE": "2", **MASTER}, "is not below"),
        ({"RANK": "-1", "WORLD_SIZE": "2", **MASTER}, "is not below"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR and MASTER_PORT"),
        ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, "MASTER_PORT must name"),
    ],
)
def test_what_cannot_be_a_world(env: dict[str, str], says: str) -> None:
    with pytest.raises(BadConfig) as raised:
        environment.ranks(env)
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("spec", "name", "split"),
    [
        ("org/name:train", "org/name", "train"),
        ("org/name:train[:10%]", "org/name", "train[:10%]"),
        ("org/name", "org/name", ""),
        ("/data/x.jsonl:validation", "/data/x.jsonl", "validation"),
        ("C:/data", "C:/data", ""),
    ],
)
def test_a_split_is_behind_the_colon(spec: str, name: str, split: str) -> None:
    assert split_of(spec) == (name, split)


def test_a_path_that_exists_is_never_taken_apart(tmp_path: object) -> None:
    path = tmp_path / "odd:train"  # type: ignore[operator]
    path.write_text("x")
    assert split_of(str(path)) == (str(path), "")


ENDS = """
import atexit, sys, threading, time
from hpctrain_trl import environment

class Kept:
    def __del__(self):
        print("taken apart", end=";")

kept = Kept()
kept.itself = kept
atexit.register(print, "at exit", end=";")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread", end=";"))).start()
environment.end(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 75])
def test_the_end_waits_for_threads_and_handlers_and_takes_nothing_apart(code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS, str(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "thread;at exit;", "")
