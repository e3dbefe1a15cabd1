"""Who is named, and who never is: scenes of ranks as values, as real runs left them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hpctrain_job.hangs.evidence import Doing, Kind, Look, Operation, Rank
from hpctrain_job.hangs.judgement import judge
from hpctrain_job.hangs.thresholds import Thresholds

LIMITS = Thresholds()
WORLD = "0"


def in_world(number: int, name: str = "gloo:all_reduce", size: str = "10") -> Operation:
    return Operation(WORLD, number, name, size)


def rank(number: int, begun: int, pending: Operation | None = None, **facts: Any) -> Rank:
    return Rank(
        **{
            "rank": number, "node": f"n{number // 2}", "node_rank": number // 2, "numbers": {WORLD: begun},
            "pending": pending, "stack": ("train.py:main", "train.py:step"), "watched": 5.0, **facts,
        }
    )  # fmt: skip


def victims(count: int, *but: int, at: int = 100) -> list[Rank]:
    """All ranks of a group of `count` that wait in operation `at`, but for some."""
    return [rank(n, at, in_world(at), doing=Doing.IDLE) for n in range(count) if n not in but]


def look(still: float, *ranks: Rank, members: Mapping[str, tuple[int, ...]] | None = None) -> Look:
    groups = members or {WORLD: tuple(sorted(rank.rank for rank in ranks))}
    return Look(still, tuple(sorted(ranks, key=lambda rank: rank.rank)), groups)


ABSENT = [  # what the rank does for whom the others wait, how it is called, from when on
    (Doing.STOPPED, {}, Kind.STOPPED, 30.0),
    (Doing.GONE, {}, Kind.DIED, 5.0),
    (Doing.LEFT, {}, Kind.LEFT, 30.0),
    (Doing.SILENT, {}, Kind.SILENT, 30.0),
    (Doing.IDLE, {}, Kind.IDLE, 32.5),
    (Doing.IDLE, {"watched": 0.5}, Kind.IDLE, 180.0),
    (Doing.BUSY, {}, Kind.BUSY, 180.0),
    (Doing.UNKNOWN, {}, Kind.BUSY, 180.0),
    (Doing.MOVING, {}, Kind.LONG, 1800.0),
    (Doing.CHILD, {}, Kind.LONG, 1800.0),
    (Doing.IDLE, {"stack": ("train.py:main", "trainer.py:_save_checkpoint")}, Kind.LONG, 1800.0),
    (Doing.BUSY, {"stack": ("train.py:main", "trainer.py:evaluate")}, Kind.LONG, 1800.0),
]


@pytest.mark.parametrize(("doing", "facts", "kind", "after"), ABSENT)
def test_a_rank_for_whom_the_others_wait_is_named_when_its_time_is_over(
    doing: Doing, facts: dict[str, Any], kind: Kind, after: float
) -> None:
    scene = [*victims(8, 5), rank(5, 99, doing=doing, **facts)]
    assert not judge(look(after - 0.1, *scene), LIMITS).hangs
    verdict = judge(look(after, *scene), LIMITS)
    assert (verdict.kind, verdict.ranks, verdict.nodes) == (kind, (5,), ("n2",))
    assert any("7 ranks wait for it in gloo:all_reduce 100" in line for line in verdict.evidence)


def test_rank_0_that_computes_alone_has_the_time_of_an_evaluation() -> None:
    scene = [*victims(8, 0), rank(0, 99, doing=Doing.BUSY)]
    assert not judge(look(1799.0, *scene), LIMITS).hangs
    assert judge(look(1800.0, *scene), LIMITS).ranks == (0,)


def test_ranks_of_one_node_are_named_with_their_node() -> None:
    scene = [*victims(8, 4, 5), rank(4, 99, doing=Doing.SILENT), rank(5, 99, doing=Doing.SILENT)]
    verdict = judge(look(31.0, *scene), LIMITS)
    assert (verdict.ranks, verdict.nodes, verdict.node_ranks) == ((4, 5), ("n2",), (2,))


def test_a_victim_of_a_victim_is_not_named() -> None:
    """Tensor groups {0, 1}, {2, 3}, data groups {0, 2}, {1, 3}: 3 loops; 1 and 2 wait for it, 0 for 2."""
    members = {"t0": (0, 1), "t1": (2, 3), "d0": (0, 2), "d1": (1, 3)}

    def mesh(number: int, tensor: str, data: str, first: Operation | None, t: int, d: int) -> Rank:
        return rank(number, 0, first, numbers={tensor: t, data: d}, doing=Doing.BUSY)

    scene = [
        mesh(0, "t0", "d0", Operation("d0", 50, "gloo:all_reduce"), t=50, d=50),
        mesh(1, "t0", "d1", Operation("d1", 50, "gloo:all_reduce"), t=50, d=50),
        mesh(2, "t1", "d0", Operation("t1", 50, "gloo:all_reduce"), t=50, d=49),
        mesh(3, "t1", "d1", None, t=49, d=49),
    ]
    verdict = judge(look(180.0, *scene, members=members), LIMITS)
    assert (verdict.kind, verdict.ranks) == (Kind.BUSY, (3,))


def test_a_rank_in_another_operation_is_named() -> None:
    scene = [*victims(4, 2), rank(2, 100, in_world(100, "gloo:barrier"), doing=Doing.IDLE)]
    verdict = judge(look(30.0, *scene), LIMITS)
    assert (verdict.kind, verdict.ranks) == (Kind.MISMATCH, (2,))


def test_a_rank_with_another_size_is_named_where_sizes_are_the_same_for_all() -> None:
    scene = [*victims(4, 2), rank(2, 100, in_world(100, size="20"), doing=Doing.IDLE)]
    assert judge(look(30.0, *scene), LIMITS).ranks == (2,)
    uneven = [replace(one, pending=replace(one.pending, name="all_to_all")) for one in scene if one.pending]
    assert not judge(look(30.0, *uneven), LIMITS).hangs


def test_of_two_who_differ_nobody_is_named_before_the_long_time() -> None:
    scene = [rank(0, 100, in_world(100)), rank(1, 100, in_world(100, "gloo:barrier"))]
    assert not judge(look(1799.0, *scene), LIMITS).hangs
    assert judge(look(1800.0, *scene), LIMITS).ranks == ()


def test_an_order_that_never_was_names_who_left_one_out() -> None:
    """A mesh in which every rank waits and the counts form a circle: only the order is new."""
    seen = frozenset({"t:all_reduce > d:all_reduce", "d:all_reduce > t:all_reduce"})
    members = {"t0": (0, 1), "t1": (2, 3), "d0": (0, 2), "d1": (1, 3)}

    def waiting(number: int, first: str, t: str, d: str, order: str, t_begun: int, d_begun: int) -> Rank:
        operation = Operation(first, t_begun if first == t else d_begun, "gloo:all_reduce")
        return rank(
            number, 0, operation, numbers={t: t_begun, d: d_begun}, order=order, orders=seen, doing=Doing.IDLE
        )

    scene = [
        waiting(0, "d0", "t0", "d0", "t:all_reduce > d:all_reduce", 49, 50),
        waiting(1, "t0", "t0", "d1", "d:all_reduce > t:all_reduce", 50, 50),
        waiting(2, "t1", "t1", "d0", "d:all_reduce > t:all_reduce", 50, 49),
        waiting(3, "d1", "t1", "d1", "d:all_reduce > d:all_reduce", 49, 51),
    ]
    verdict = judge(look(30.0, *scene, members=members), LIMITS)
    assert (verdict.kind, verdict.ranks) == (Kind.ORDER, (3,))


def test_a_device_that_stands_still_is_named_by_those_who_are_through() -> None:
    scene = [*(rank(n, 100, doing=Doing.BUSY) for n in range(3)), rank(3, 100, in_world(100))]
    verdict = judge(look(30.0, *scene), LIMITS)
    assert (verdict.kind, verdict.ranks) == (Kind.STUCK, (3,))


def test_a_rank_that_was_ended_while_it_waited_is_a_victim() -> None:
    """gloo and NCCL's watchdog end innocent ranks by SIGABRT; who is absent is still to be seen."""
    scene = [
        *victims(4, 1, 3),
        rank(1, 100, in_world(100), doing=Doing.GONE),
        rank(3, 99, doing=Doing.IDLE),
    ]
    assert judge(look(33.0, *scene), LIMITS).ranks == (3,)


def test_when_all_wait_together_nobody_is_named() -> None:
    assert not judge(look(1799.0, *victims(8)), LIMITS).hangs
    verdict = judge(look(1800.0, *victims(8)), LIMITS)
    assert (verdict.kind, verdict.ranks) == (Kind.NETWORK, ())
    assert "8 of 8 ranks wait in gloo:all_reduce 100 of group 0" in verdict.evidence


def test_while_most_are_absent_nobody_is_named() -> None:
    """A slow disk, a compilation on all: one has come already."""
    scene = [*(rank(n, 99, doing=Doing.BUSY) for n in range(1, 8)), *victims(1)]
    assert not judge(look(1799.0, *scene), LIMITS).hangs
    assert judge(look(1800.0, *scene), LIMITS).ranks == ()


@pytest.mark.parametrize("doing", [Doing.IDLE, Doing.BUSY])
def test_a_start_accuses_nobody(doing: Doing) -> None:
    scene = [*victims(8, 5, at=3), rank(5, 2, doing=doing)]
    assert not judge(look(1799.0, *scene), LIMITS).hangs
    assert judge(look(1800.0, *scene), LIMITS).ranks == ()


def test_a_rank_that_is_stopped_at_the_start_is_named() -> None:
    scene = [*victims(8, 5, at=3), rank(5, 2, doing=Doing.STOPPED)]
    assert judge(look(31.0, *scene), LIMITS).ranks == (5,)


def test_who_waits_for_ranks_that_nobody_sees_is_not_named() -> None:
    """Rank 1 waits for rank 0, which waits in a group with ranks of a node where nobody watches."""
    members = {"t": (0, 1), "d": (0, 8)}
    scene = [
        rank(0, 0, Operation("d", 50, "all_reduce"), numbers={"t": 49, "d": 50}, doing=Doing.BUSY),
        rank(1, 0, Operation("t", 50, "all_reduce"), numbers={"t": 50}, doing=Doing.BUSY),
    ]
    assert not judge(look(1799.0, *scene, members=members), LIMITS).hangs
    assert judge(look(1800.0, *scene, members=members), LIMITS).ranks == ()


def test_without_numbers_the_log_is_all_there_is_and_nobody_is_named() -> None:
    assert not judge(Look(1799.0), LIMITS).hangs
    verdict = judge(Look(1800.0), LIMITS)
    assert (verdict.kind, verdict.ranks) == (Kind.LOG, ())
    assert "the log has not grown for 1800 s" in verdict.evidence


def test_pauses_of_the_run_itself_stretch_the_times() -> None:
    slow = LIMITS.learned(pause=20.0, phase=900.0)
    assert (slow.suspect, slow.busy, slow.long) == (100.0, 180.0, 2700.0)
    assert not judge(look(99.0, *victims(8, 5), rank(5, 99, doing=Doing.IDLE)), slow).hangs


def test_moving_ranks_are_left_alone() -> None:
    scene = [*victims(8, 5), rank(5, 99, doing=Doing.IDLE)]
    assert not judge(look(29.0, *scene), LIMITS).hangs
