"""A board with two leaders, ranks as children, the fence, and what `decide` says with spare nodes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hpctrain_job import fence, resume
from hpctrain_job.chain import decision
from hpctrain_job.chain.decision import Attempt, Cause, Ended, Record, Restart, Submit, decide
from hpctrain_job.guards.board import Beat, Board, Order, Phase, State
from hpctrain_job.guards.ranks import Ranks
from tests.patience import wait_for

TERMS = decision.Terms(total=36000, time=36000, links=2, nodes=2)
FIRST = Attempt("7", 0.0, first_step=0, nodes=("a", "b"))
SUBREAPER = 36


@pytest.fixture(autouse=True)
def _nobody_else_s_reaper() -> Iterator[None]:
    """`Ranks` makes this process the parent of all orphans: a rig that ends after it would wait for us."""
    yield
    ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)


def ended(cause: Cause, *standing: str, lost: tuple[str, ...] = (), left: float = 9000.0) -> Ended:
    return Ended("7", 60.0, cause, 20, lost, standing, left)


@pytest.mark.parametrize(
    ("event", "nodes"),
    [
        (ended(Cause.NODE, "a", "c", lost=("b",)), ("a", "c")),
        (ended(Cause.LOST, "b", "c", lost=("a",)), ("b", "c")),
        (ended(Cause.FAILED, "a", "b", "c"), ("a", "b")),
        (ended(Cause.HUNG, "a", "b", "c", lost=("a",)), ("b", "c")),
        (ended(Cause.NODE, "a", lost=("b",)), None),
        (ended(Cause.NODE, "a", "c", lost=("b",), left=200), None),
        (ended(Cause.SAVED, "a", "b", "c"), None),
        (ended(Cause.TAKEN, "a", "b", "c"), None),
        (ended(Cause.CANCELLED, "a", "b", "c"), None),
        (ended(Cause.SETTING, "a", "b", "c"), None),
    ],
)
def test_where_it_goes_on_inside(event: Ended, nodes: tuple[str, ...] | None) -> None:
    actions = decide(event, Record(TERMS, (FIRST,)))
    assert [a.nodes for a in actions if isinstance(a, Restart)] == ([nodes] if nodes else [])
    assert not (nodes and any(isinstance(a, Submit) for a in actions))


def test_without_guards_nothing_goes_on_inside() -> None:
    record = Record(replace(TERMS, nodes=0), (FIRST,))
    assert not any(isinstance(a, Restart) for a in decide(ended(Cause.NODE, "a", "c"), record))


def test_a_node_that_failed_before_is_the_last_choice() -> None:
    before = replace(FIRST, ended=30.0, cause=Cause.NODE, last_step=10, lost_nodes=("a",))
    now = Attempt("7", 30.0, first_step=10, nodes=("b", "c"), is_inside=True)
    actions = decide(ended(Cause.FAILED, "a", "b", "c", "d"), Record(TERMS, (before, now)))
    assert Restart(("b", "c")) in actions
    few = decide(ended(Cause.NODE, "a", "b", lost=("c",)), Record(TERMS, (before, now)))
    assert Restart(("a", "b")) in few


def test_attempts_of_one_allocation_have_its_time_together() -> None:
    first = replace(FIRST, ended=1000.0, cause=Cause.NODE)
    second = Attempt("7", 1000.0, ended=9000.0, cause=Cause.SAVED, is_inside=True)
    terms = replace(TERMS, total=100000)
    assert decision.seconds_left(Record(terms, (first, second))) == 100000 - 36000
    third = Attempt("8", 9000.0)
    assert decision.seconds_left(Record(terms, (first, second, third))) == 100000 - 2 * 36000


def test_long_attempts_that_fail_are_no_row_of_failures() -> None:
    def record(each: float) -> Record:
        attempts = [
            Attempt("7", n * each, n, (n + 1) * each, Cause.FAILED, n + 1, is_inside=n > 0) for n in range(4)
        ]
        terms = replace(TERMS, soon=3600)
        return Record(terms, (*attempts, Attempt("7", 4 * each, 4, is_inside=True)))

    for each, goes_on in ((600.0, False), (4000.0, True)):
        event = replace(ended(Cause.FAILED, "a", "b"), at=5 * each)
        assert any(isinstance(a, Restart) for a in decide(event, record(each))) is goes_on


def test_of_two_leaders_one_orders_an_attempt(tmp_path: Path) -> None:
    board, wins = Board(tmp_path), []
    barrier = threading.Barrier(8)

    def claim() -> None:
        barrier.wait()
        wins.append(board.claim(3))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == [False] * 7 + [True]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    board = Board(tmp_path)
    assert (board.order(), board.beat("n1"), board.signal) == (None, None, "")
    largest = Beat(10**9, 10**6, Phase.STOPPED, 255, is_gone=False, is_ending=False)
    board.write_beat("n1", largest)
    board.write_beat("n1", Beat(1))
    board.write_beat("n2", largest)
    assert (board.beat("n1"), board.beat("n2")) == (Beat(1), largest)
    assert (tmp_path / "beat.n2").stat().st_size == 128
    order = Order(2, ("n1",), State.OVER, "TERM", 75, ("n2",))
    board.write_order(order)
    assert board.order() == order
    (tmp_path / "beat.n1").write_text('{"count":')
    assert board.beat("n1") is None


def test_ranks_are_ended_with_all_that_they_started(tmp_path: Path) -> None:
    pids = [tmp_path / "child", tmp_path / "far"]
    script = f"sleep 600 & echo $! >{pids[0]}; (setsid sleep 600 & echo $! >{pids[1]}); wait"
    ranks = Ranks(("bash", "-c", script))
    ranks.start([dict(os.environ)], [])
    wait_for("its children", lambda: all(path.exists() and path.read_text() for path in pids))
    children = [int(path.read_text()) for path in pids]

    def is_gone() -> bool:
        ranks.kill()
        ranks.look()
        return ranks.is_gone

    wait_for("its end", is_gone)
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
    assert ranks.code == 128 + signal.SIGKILL


def _are_gone(ranks: Ranks) -> bool:
    ranks.look()
    return ranks.is_gone


def test_how_ranks_ended_together() -> None:
    for scripts, code in ((("exit 0", "exit 75"), 75), (("exit 0", "exit 0"), 0), (("exit 75", "exit 3"), 3)):
        ranks = Ranks(("bash", "-c", 'eval "$DO"'))
        ranks.start([{**os.environ, "DO": script} for script in scripts], [])
        wait_for("their end", partial(_are_gone, ranks))
        assert ranks.code == code


def test_the_death_of_a_guard_is_the_death_of_its_ranks(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import os, time; from hpctrain_job.guards.ranks import Ranks; "
        f"Ranks(('bash', '-c', 'echo $$ >{pid_file}; exec sleep 600')).start([dict(os.environ)], []); "
        "time.sleep(600)"
    )
    guard = os.spawnve(
        os.P_NOWAIT, sys.executable, (sys.executable, "-c", code),
        {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    wait_for("the rank", lambda: pid_file.exists() and pid_file.read_text())
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    rank = Path(f"/proc/{int(pid_file.read_text())}/stat")
    wait_for("its end", lambda: not rank.exists() or ") Z " in rank.read_text(), 5)


def test_a_late_rank_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(tmp_path / "guards")
    board.folder.mkdir()
    checkpoint = tmp_path / "step-1"
    checkpoint.mkdir()
    (checkpoint / "state.json").write_text("{}")
    monkeypatch.setenv("HPC_FENCE", f"{board.folder}/order:2")
    board.write_order(Order(2, ("a",)))
    resume.write_manifest(checkpoint)
    (checkpoint / resume.MANIFEST).unlink()
    board.write_order(Order(3, ("b",)))
    with pytest.raises(fence.Fenced, match="attempt 3 trains"):
        resume.write_manifest(checkpoint)
    assert not (checkpoint / resume.MANIFEST).exists()
