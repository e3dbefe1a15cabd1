"""What the chain's one judge answers, event by event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpctrain_job.chain.decision import (
    Action,
    Avoid,
    Began,
    Cause,
    Continued,
    EndChain,
    Ended,
    Event,
    Leave,
    Record,
    Requeue,
    Submit,
    Terms,
    Train,
    applied,
    chosen,
    decide,
    seconds_left,
)

DAY = 86400
TERMS = Terms(total=10 * DAY, time=DAY, links=3)


def after(*events: Event, waiting: tuple[str, ...] = ("2", "3"), terms: Terms = TERMS) -> Record:
    record = Record(terms, waiting=waiting)
    for event in events:
        record = applied(event, record)
    return record


def ended(cause: Cause, job: str = "1", step: int | None = 100, **more: object) -> Ended:
    return Ended(job, DAY, cause, step, **more)  # type: ignore[arg-type]


BEGAN = Began("1", 0.0, 0, ("n1", "n2"))


def test_an_attempt_begins_and_the_queue_is_filled_behind_it() -> None:
    record = Record(TERMS, waiting=("1", "2"))
    assert decide(BEGAN, record) == (Train(), Submit(1, "2"))
    assert decide(BEGAN, replace(record, waiting=("1",))) == (Train(), Submit(2, "1"))
    assert decide(BEGAN, replace(record, waiting=("1", "2", "3"))) == (Train(),)


def test_waiting_jobs_stay_away_from_what_other_runs_found() -> None:
    """No more than may be left out, its own faults first; of an allocation the others train first."""
    terms = replace(TERMS, avoid=2, nodes=2)
    record = Record(terms, waiting=("1", "2", "3"), bad_nodes=("n7", "n8"))
    assert decide(BEGAN, record) == (Train(), Avoid(("n7", "n8"), ("2", "3")))
    assert decide(BEGAN, replace(record, terms=replace(terms, avoid=0))) == (Train(),)
    failed = applied(ended(Cause.NODE, lost_nodes=("n2",)), applied(BEGAN, record))
    assert failed.avoided == ("n2", "n7")
    assert chosen(("n7", "n1", "n2", "n3"), failed) == ("n1", "n3")
    assert chosen(("n7", "n1"), record) == ("n7", "n1")


def test_no_more_jobs_than_the_time_left_needs_and_a_spare() -> None:
    many = replace(TERMS, links=9)
    for days, count in ((1, 1), (2, 2), (4, 4), (30, 8)):
        record = after(waiting=(), terms=replace(many, total=days * DAY))
        assert decide(BEGAN, record) == (Train(), Submit(count, "1"))


def test_the_spare_behind_the_last_attempt_has_nothing_to_do_once_the_total_is_used() -> None:
    short = replace(TERMS, total=DAY)
    record = after(BEGAN, ended(Cause.LIMIT), waiting=("2",), terms=short)
    why = "its total time is used up"
    assert decide(Began("2", DAY), record) == (EndChain(why, ()), Leave(why))
    lost = after(BEGAN, Ended("1", 3600, Cause.LOST, 0), waiting=("2",), terms=short)
    assert decide(Began("2", DAY, 0), lost) == (Train(), Submit(1, "2"))


@pytest.mark.parametrize(
    ("cause", "actions"),
    [
        (Cause.FINISHED, (EndChain("finished", ("2", "3")),)),
        (Cause.SETTING, (EndChain("wrong setting", ("2", "3")),)),
        (Cause.NETWORK, (EndChain("refused network", ("2", "3")),)),
        (Cause.DIVERGED, (EndChain("diverged", ("2", "3")),)),
        (Cause.FULL, (Submit(1, "3"),)),
        (Cause.DAMAGED, (EndChain("damaged checkpoints", ("2", "3")),)),
        (Cause.CANCELLED, (EndChain("cancelled", ("2", "3")),)),
        (Cause.SAVED, (Submit(1, "3"),)),
        (Cause.LIMIT, (Submit(1, "3"),)),
        (Cause.TAKEN, (Submit(1, "3"),)),
        (Cause.LOST, (Submit(1, "3"),)),
        (Cause.FAILED, (Submit(1, "3"),)),
    ],
)
def test_every_cause_has_its_answer(cause: Cause, actions: tuple[Action, ...]) -> None:
    assert decide(ended(cause), after(BEGAN)) == actions


def test_three_attempts_in_a_row_without_room_end_it() -> None:
    record = after(BEGAN, ended(Cause.FULL), Began("2", DAY, 100), waiting=("3", "4"))
    assert decide(ended(Cause.FULL, "2", 100), record) == (Submit(1, "4"),)
    third = applied(Began("3", DAY, 100), applied(ended(Cause.FULL, "2", 100), record))
    assert decide(ended(Cause.FULL, "3", 100), third) == (EndChain("full disk", ("4",)),)
    assert decide(ended(Cause.SAVED, "3", 200), third) == (Submit(2, "4"),)


def test_a_node_fault_goes_on_without_that_node() -> None:
    fault = ended(Cause.NODE, lost_nodes=("n2",))
    assert decide(fault, after(BEGAN)) == (Avoid(("n2",), ("2", "3")), Submit(1, "3"))
    again = (BEGAN, fault, Began("2", DAY, 100))
    second = ended(Cause.NODE, "2", 200, lost_nodes=("n7",))
    assert decide(second, after(*again))[0] == Avoid(("n7", "n2"), ("3",))
    few = replace(TERMS, avoid=1)
    assert decide(second, after(*again, terms=few))[0] == Avoid(("n7",), ("3",))


def test_a_job_that_is_requeued_hands_over_no_other_and_its_nodes_change_behind_that() -> None:
    terms = replace(TERMS, links=1, requeue=True)
    assert decide(BEGAN, Record(terms, waiting=("1",))) == (Train(),)
    record = after(BEGAN, waiting=(), terms=terms)
    for cause in (Cause.SAVED, Cause.LIMIT, Cause.FAILED):
        assert decide(ended(cause), record) == (Requeue("1"),)
    fault = ended(Cause.NODE, lost_nodes=("n2",))
    assert decide(fault, record) == (Requeue("1"), Avoid(("n2",), ("1",)))
    assert decide(ended(Cause.TAKEN), record) == (), "the scheduler has queued it again"
    assert decide(ended(Cause.FINISHED), record) == (EndChain("finished"),)
    assert decide(ended(Cause.CANCELLED), record) == (EndChain("cancelled"),)
    again = after(BEGAN, ended(Cause.SAVED), Began("1", 2 * DAY, 100), waiting=(), terms=terms)
    assert decide(ended(Cause.SAVED, step=200), again) == (Requeue("1"),)
    short = replace(again, terms=replace(terms, total=2 * DAY))
    assert decide(ended(Cause.SAVED, step=200), short) == (EndChain("its total time is used up"),)
    assert decide(Continued(0), replace(record, attempts=(), ended="x")) == (Submit(1),)


def test_attempts_without_a_newer_checkpoint_end_the_chain() -> None:
    events: list[Event] = []
    for job in ("1", "2"):
        events += [Began(job, 0, 100), ended(Cause.LOST, job, 100)]
    third = (*events, Began("3", 0, 100))
    (end,) = decide(ended(Cause.NODE, "3", 100), after(*third, waiting=("4",)))
    assert end == EndChain("no progress over 3 attempts: no newer checkpoint", ("4",))
    assert decide(ended(Cause.NODE, "3", 101), after(*third, waiting=("4",))) == (Submit(2, "4"),)
    # where no checkpoint is known, nothing can be said of progress
    unknown: list[Event] = [Began("3", 0), ended(Cause.LOST, "3", None)] * 5
    assert not isinstance(decide(ended(Cause.LOST, "3", None), after(*unknown, Began("3", 0)))[0], EndChain)


def test_a_program_that_fails_again_and_again_ends_the_chain_in_spite_of_progress() -> None:
    events: list[Event] = []
    for number in range(4):
        events += [Began("1", 0, number), Ended("1", 60, Cause.FAILED, number + 1)]
    record = after(*events, Began("1", 0, 4))
    assert decide(Ended("1", 60, Cause.FAILED, 5), record) == (
        EndChain("5 attempts in a row failed", ("2", "3")),
    )
    assert not isinstance(decide(Ended("1", 60, Cause.NODE, 5), record)[0], EndChain)


def test_failures_that_come_late_are_faults_of_many_nodes_and_not_a_loop() -> None:
    terms = replace(TERMS, soon=600)
    events: list[Event] = []
    for number in range(9):
        events += [Began("1", 0, number), Ended("1", 700, Cause.FAILED, number + 1)]
    record = after(*events, Began("1", 0, 9), terms=terms)
    assert decide(Ended("1", 700, Cause.FAILED, 10), record) == (Submit(1, "3"),)
    soon = after(
        *events[:2], *(replace(e, at=60) if isinstance(e, Ended) else e for e in events), terms=terms
    )
    assert decide(Ended("1", 60, Cause.FAILED, 10), applied(Began("1", 0, 9), soon)) == (
        EndChain("5 attempts in a row failed", ("2", "3")),
    )


def test_the_total_is_spent_by_whole_attempts_and_by_parts_of_them() -> None:
    record = after(
        BEGAN, ended(Cause.SAVED), Began("2", 2 * DAY), Ended("2", 2 * DAY + 3600, Cause.LOST, 100)
    )
    assert seconds_left(record) == 9 * DAY - 3600
    short = replace(TERMS, total=2 * DAY)
    last = after(BEGAN, ended(Cause.SAVED), Began("2", 2 * DAY, 100), waiting=("3",), terms=short)
    assert decide(ended(Cause.SAVED, "2", 200), last) == (EndChain("its total time is used up", ("3",)),)


def test_a_job_of_a_chain_that_ended_leaves_at_once() -> None:
    assert decide(Began("2", 0), replace(after(), ended="finished")) == (Leave("finished"),)


def test_a_stop_file_ends_the_chain_at_an_end_and_at_a_begin() -> None:
    record = replace(after(BEGAN), stop_file="/shared/stop")
    why = "stopped: /shared/stop is there"
    assert decide(ended(Cause.SAVED), record) == (EndChain(why, ("2", "3")),)
    assert decide(Began("2", 0), replace(after(), stop_file="/shared/stop")) == (
        EndChain(why, ("3",)),
        Leave(why),
    )


def test_a_person_continues_whatever_ended_it_and_all_counts_begin_anew() -> None:
    events: list[Event] = []
    for _ in range(3):
        events += [Began("1", 0, 100), Ended("1", 60, Cause.FAILED, 100)]
    dead = replace(after(*events, waiting=()), ended="no progress")
    assert decide(Continued(0), dead) == (Submit(3, ""),)
    alive = applied(Continued(0), dead)
    assert decide(Began("9", 0, 100), alive)[0] == Train()
    failed = decide(Ended("9", 60, Cause.FAILED, 100), applied(Began("9", 0, 100), alive))
    assert failed == (Submit(3, "9"),)


def test_a_person_lengthens_a_chain_whose_total_is_used_by_one_attempt() -> None:
    short = replace(TERMS, total=DAY)
    record = after(BEGAN, ended(Cause.SAVED), waiting=(), terms=short)
    assert decide(Continued(0), record) == (Submit(1, ""),)
    assert decide(Continued(0), replace(record, waiting=("5",))) == ()


def test_a_person_fills_the_queue_of_a_living_chain_behind_its_last_job() -> None:
    assert decide(Continued(0), after(BEGAN, waiting=())) == (Submit(2, "1"),)
    assert decide(Continued(0), after(BEGAN, waiting=("2",))) == (Submit(1, "2"),)
    assert decide(Continued(0), after(BEGAN, waiting=("2", "3"))) == ()


def test_a_job_that_is_started_again_under_its_id_is_another_attempt() -> None:
    record = after(BEGAN, ended(Cause.TAKEN), Began("1", 2 * DAY, 100))
    assert [attempt.is_open for attempt in record.attempts] == [False, True]
    closed = applied(ended(Cause.SAVED, step=300), record)
    assert [attempt.last_step for attempt in closed.attempts] == [100, 300]


@pytest.mark.parametrize("requeue", [False, True], ids=["chained", "requeued"])
def test_preemption_is_no_fault_of_the_run_however_often_it_comes(*, requeue: bool) -> None:
    terms = replace(TERMS, requeue=requeue, links=1 if requeue else 3)
    events: list[Event] = []
    for number in range(1, 9):
        events += [Began(str(number), 0, 100), Ended(str(number), 60, Cause.TAKEN, 100)]
    record = after(*events, Began("9", 0, 100), waiting=() if requeue else ("10", "11"), terms=terms)
    again: tuple[Action, ...] = () if requeue else (Submit(1, "11"),)
    assert decide(Ended("9", 60, Cause.TAKEN, 100), record) == again
    # between faults it neither adds to them nor makes them forgotten
    idle: list[Event] = [Began("a", 0, 100), Ended("a", 60, Cause.LOST, 100)] * 2
    third = after(*idle, *events, Began("9", 0, 100), waiting=("10",), terms=terms)
    why = "no progress over 3 attempts: no newer checkpoint"
    assert decide(Ended("9", 60, Cause.LOST, 100), third) == (EndChain(why, ("10",)),)


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("requeue", [False, True], ids=["chained", "requeued"])
def test_every_cause_either_ends_the_chain_or_leaves_somebody_to_go_on(
    cause: Cause, *, requeue: bool
) -> None:
    """Nobody is lost: with an end the reason stands and the queue is emptied; else a job waits behind it, is
    asked for, or is queued again by itself or by the scheduler."""
    terms = replace(TERMS, requeue=requeue, links=1 if requeue else 3)
    for waiting in ((), ("2",), ("2", "3")):
        record = after(BEGAN, waiting=() if requeue else waiting, terms=terms)
        event = ended(cause, lost_nodes=("n2",) if cause is Cause.NODE else ())
        actions = decide(event, record)
        ends = [action for action in actions if isinstance(action, EndChain)]
        if ends:
            assert ends == [EndChain(cause.value, record.waiting)]
            assert actions == (ends[0],), "and nothing is asked for"
        else:
            asked = any(isinstance(action, (Submit, Requeue)) for action in actions)
            assert asked or record.waiting or (requeue and cause is Cause.TAKEN)
