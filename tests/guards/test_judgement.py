"""What a leader does next, from what it sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpctrain_job.guards.board import Beat, Order, Phase, State
from hpctrain_job.guards.judgement import AttemptOver, Finish, Halt, Terms, View, next_step

TERMS = Terms()
NODES = ("n1", "n2", "n3")
RUN = Order(2, ("n1", "n2"))
HALT = replace(RUN, state=State.HALT, code=1)


def beat(phase: Phase, code: int = 0, *, attempt: int = 2, is_gone: bool = True) -> Beat:
    return Beat(7, attempt, phase, code, is_gone)


def view(order: Order, *beats: Beat | None, **seen: object) -> View:
    given = {node: one for node, one in zip(NODES, beats, strict=True) if one}
    return replace(View(order, NODES, 2, given), **seen)  # type: ignore[arg-type]


RUNNING = beat(Phase.RUNNING, is_gone=False)
IDLE, STOPPED = beat(Phase.IDLE), beat(Phase.STOPPED)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (view(RUN, RUNNING, RUNNING, IDLE), None),
        (view(RUN, RUNNING, None, IDLE), None),
        (view(RUN, RUNNING, beat(Phase.FAILED, 137), IDLE), Halt(137)),
        (view(RUN, RUNNING, RUNNING, IDLE, silent=frozenset({"n3"})), None),
        (view(RUN, RUNNING, RUNNING, IDLE, silent=frozenset({"n2"})), Halt(1, ("n2",))),
        (view(RUN, beat(Phase.DONE), beat(Phase.DONE), IDLE), Finish(0)),
        (view(RUN, beat(Phase.DONE), beat(Phase.DONE, 75), IDLE), Finish(75)),
        (view(RUN, beat(Phase.DONE), RUNNING, IDLE), None),
        (view(RUN, beat(Phase.DONE), RUNNING, IDLE, straggled=9999), Halt(1)),
        # what a node still says of the attempt before counts for nothing
        (view(RUN, RUNNING, beat(Phase.FAILED, 1, attempt=1), IDLE), None),
        (view(RUN, beat(Phase.DONE), beat(Phase.DONE, attempt=1), IDLE), None),
    ],
)
def test_while_it_runs(seen: View, step: object) -> None:
    assert next_step(seen, TERMS) == step


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (view(HALT, STOPPED, beat(Phase.FAILED, 1), IDLE), AttemptOver(1, NODES)),
        # ranks that are not gone are waited for, and so is a node that may yet be silent
        (view(HALT, RUNNING, STOPPED, IDLE), None),
        (view(HALT, beat(Phase.STOPPED, is_gone=False), STOPPED, IDLE), None),
        # not for ever where it can be done without, and longer where it is needed
        (view(HALT, STOPPED, RUNNING, IDLE, halted=20), AttemptOver(1, ("n1", "n3"), ("n2",))),
        (view(HALT, STOPPED, RUNNING, RUNNING, halted=20), None),
        (view(HALT, STOPPED, RUNNING, RUNNING, halted=240), AttemptOver(1, ("n1",), ("n2",))),
        (
            view(HALT, STOPPED, RUNNING, IDLE, silent=frozenset({"n2"})),
            AttemptOver(1, ("n1", "n3"), ("n2",)),
        ),
        # a spare that is silent is to blame for nothing
        (view(HALT, STOPPED, STOPPED, IDLE, silent=frozenset({"n3"})), AttemptOver(1, ("n1", "n2"))),
        # the code that says why counts for more than those of its peers
        (view(HALT, beat(Phase.FAILED, 1), beat(Phase.FAILED, 78), IDLE), AttemptOver(78, NODES)),
        (view(replace(HALT, state=State.OVER), RUNNING, RUNNING, IDLE), None),
    ],
)
def test_while_it_halts(seen: View, step: object) -> None:
    assert next_step(seen, TERMS) == step


def test_a_large_job_asks_no_more_of_the_file_server_than_a_small_one() -> None:
    small, large = Terms.of(4), Terms.of(1000)
    assert small.look * small.beat == 1.0
    assert 1000 / (large.look * large.beat) <= 64
