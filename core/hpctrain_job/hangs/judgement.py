"""Who is to blame when nothing moves: one pure function of a look at the training.

Ranks that wait for each other are a graph: from each, edges to those that have not come to its first
operation that is not complete. Whoever is waited for and waits for nobody is an end of it. A victim of a
victim waits too, so groups of tensors, pipelines and experts need no rule of their own. How long an end may
take depends on what it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from hpctrain_job.hangs.evidence import Doing, Kind, Look, Operation, Rank, Verdict
from hpctrain_job.hangs.thresholds import FIXED, PHASE_WORDS, Thresholds

WELL = Verdict(Kind.WELL)
_END_KINDS = {
    Doing.SILENT: Kind.SILENT,
    Doing.GONE: Kind.DIED,
    Doing.LEFT: Kind.LEFT,
    Doing.IDLE: Kind.IDLE,
}
"""What an end that does this is named for; another that is past its time computes."""


def judge(look: Look, limits: Thresholds) -> Verdict:
    """Who hangs, with the evidence, or nobody and why."""
    if not look.begun:
        return Verdict(Kind.LOG, evidence=(_still(look),)) if look.still >= limits.long else WELL
    edges = waits(look)
    died = _died(look, edges)
    if died and look.still >= limits.gone:
        return _named(Kind.DIED, died, look, edges)
    if look.still < limits.suspect:
        return WELL
    stopped = [rank for rank in look.ranks if rank.doing is Doing.STOPPED]
    if stopped and len(stopped) < len(look.ranks):
        return _named(Kind.STOPPED, stopped, look, edges)
    if look.begun < limits.young:
        return Verdict(Kind.START, evidence=(_still(look),)) if look.still >= limits.long else WELL
    ends = _ends(look, edges)
    if ends:
        return _by_ends(ends, look, edges, limits)
    return _by_difference(look, edges, limits)


def waits(look: Look) -> Mapping[int, frozenset[int]]:
    """For whom each rank waits that waits in an operation; itself, where others have completed that one."""
    ranks = {rank.rank: rank for rank in look.ranks}
    return {
        rank.rank: _waits_for(rank, rank.pending, look.members.get(rank.pending.group, ()), ranks)
        for rank in look.ranks
        if rank.pending is not None and rank.doing not in (Doing.GONE, Doing.LEFT, Doing.SILENT)
    }


def phase_of(rank: Rank) -> str:
    """The word of its stack that may take long in good health; empty where there is none."""
    stack = " ".join(rank.stack).lower()
    return next((word for word in PHASE_WORDS if word in stack), "")


def _waits_for(
    rank: Rank, pending: Operation, members: Collection[int], ranks: Mapping[int, Rank]
) -> frozenset[int]:
    peers = [ranks[member] for member in members if member != rank.rank and member in ranks]
    behind = [peer for peer in peers if peer.numbers.get(pending.group, 0) < pending.number]
    if not behind:
        behind = [peer for peer in peers if _is_elsewhere(peer, pending)]
    if not behind and any(_has_completed(peer, pending) for peer in peers):
        behind = [rank]
    # of ranks that nobody sees, all that is known is that they may be the ones
    unseen = {member for member in members if member not in ranks} if not behind else ()
    return frozenset((*(peer.rank for peer in behind), *unseen))


def _is_elsewhere(peer: Rank, pending: Operation) -> bool:
    """Whether it has begun this operation too, but waits in an earlier one, or in another group's."""
    first = peer.pending
    if first is None:
        return False
    if first.group == pending.group:
        return first.number < pending.number
    return True


def _has_completed(peer: Rank, pending: Operation) -> bool:
    first, number = peer.pending, peer.numbers.get(pending.group, 0)
    return number >= pending.number and (
        first is None or first.group != pending.group or first.number > number
    )


def _died(look: Look, edges: Mapping[int, frozenset[int]]) -> list[Rank]:
    """Those that are gone and were not waiting: gloo and NCCL's watchdog end those who wait."""
    waited_for = _waited_for(edges)
    gone = [rank for rank in look.ranks if rank.doing is Doing.GONE and rank.pending is None]
    return [rank for rank in gone if rank.rank in waited_for]


def _waited_for(edges: Mapping[int, frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*edges.values())


def _ends(look: Look, edges: Mapping[int, frozenset[int]]) -> list[Rank]:
    waited_for = _waited_for(edges)
    return [
        rank
        for rank in look.ranks
        if rank.rank in waited_for and edges.get(rank.rank, frozenset()) <= {rank.rank}
        if not (rank.doing is Doing.GONE and rank.pending is not None)
    ]


def _by_ends(
    ends: list[Rank], look: Look, edges: Mapping[int, frozenset[int]], limits: Thresholds
) -> Verdict:
    many = 2 * len(ends) > len(look.ranks)
    late = {rank.rank: limits.long if many else _patience(rank, limits) for rank in ends}
    named = [rank for rank in ends if look.still >= late[rank.rank]]
    if not named:
        return WELL
    if many:
        return Verdict(Kind.NETWORK, evidence=(_still(look), *_scene(look)))
    kinds = Counter(_kind(rank) for rank in named)
    (kind, _), *_ = kinds.most_common()
    return _named(kind, [rank for rank in named if _kind(rank) is kind], look, edges)


def _patience(end: Rank, limits: Thresholds) -> float:
    """How long an end may take, by what it does."""
    if end.pending is not None or end.doing in (Doing.SILENT, Doing.LEFT, Doing.GONE):
        return limits.suspect
    if phase_of(end) or end.doing in (Doing.MOVING, Doing.CHILD):
        return limits.long
    if end.doing is Doing.IDLE and end.watched >= limits.watch:
        return limits.suspect + limits.watch
    # rank 0 alone evaluates, saves and reports, often in a function whose name says nothing
    return limits.long if end.rank == 0 else limits.busy


def _kind(end: Rank) -> Kind:
    if end.pending is not None and end.doing is not Doing.SILENT:
        return Kind.STUCK
    if end.doing in _END_KINDS and not (end.doing is Doing.IDLE and phase_of(end)):
        return _END_KINDS[end.doing]
    return Kind.LONG if phase_of(end) or end.doing in (Doing.MOVING, Doing.CHILD) else Kind.BUSY


def _by_difference(look: Look, edges: Mapping[int, frozenset[int]], limits: Thresholds) -> Verdict:
    """All wait, in a circle or together: who is in another operation than its group, or in a new order?"""
    odd = _minority(look) or _minority(look, sizes=True)
    if odd:
        return _named(Kind.MISMATCH, odd, look, edges)
    past_orders = frozenset().union(*(rank.orders for rank in look.ranks))
    new = [rank for rank in look.ranks if rank.order and rank.order not in past_orders]
    if len(new) == 1 and past_orders:
        return _named(Kind.ORDER, new, look, edges)
    if look.still >= limits.long:
        return Verdict(Kind.NETWORK, evidence=(_still(look), *_scene(look)))
    return WELL


def _minority(look: Look, *, sizes: bool = False) -> list[Rank]:
    """Those who call the same operation of a group by another name, or size, than more than half of it do."""
    scenes: dict[tuple[str, int], list[Rank]] = {}
    for rank in look.ranks:
        if rank.pending is not None:
            scenes.setdefault((rank.pending.group, rank.pending.number), []).append(rank)
    odd: list[Rank] = []
    for ranks in scenes.values():
        names = Counter(_call(rank.pending, sizes=sizes) for rank in ranks)
        (usual, count), *_ = names.most_common()
        if len(names) > 1 and 2 * count > len(ranks):
            odd += [rank for rank in ranks if _call(rank.pending, sizes=sizes) != usual]
    return odd


def _call(operation: Operation | None, *, sizes: bool) -> str:
    if operation is None:
        return ""
    has_size = sizes and any(name in operation.name for name in FIXED)
    return f"{operation.name} {operation.size}" if has_size else operation.name


def _named(kind: Kind, ranks: list[Rank], look: Look, edges: Mapping[int, frozenset[int]]) -> Verdict:
    ranks = sorted(ranks, key=lambda rank: rank.rank)
    return Verdict(
        kind,
        tuple(rank.rank for rank in ranks),
        tuple(dict.fromkeys(rank.node for rank in ranks)),
        tuple(dict.fromkeys(rank.node_rank for rank in ranks)),
        (_still(look), *(line for rank in ranks[:4] for line in _about(rank, look, edges))),
    )


def _about(rank: Rank, look: Look, edges: Mapping[int, frozenset[int]]) -> Iterator[str]:
    """What speaks against one rank."""
    ranks = {peer.rank: peer for peer in look.ranks}
    waiting = [ranks[r] for r, targets in edges.items() if rank.rank in targets and r != rank.rank]
    operations = Counter(peer.pending for peer in waiting if peer.pending is not None)
    for operation, count in operations.most_common(1):
        begun = rank.numbers.get(operation.group, 0)
        who = "1 rank waits" if count == 1 else f"{count} ranks wait"
        yield f"{rank.place}: {who} for it in {operation.words}; it has begun {begun} of that group"
    if rank.pending is not None:
        yield f"{rank.place}: it waits in {rank.pending.words}"
    phase = f", in {phase_of(rank)}" if phase_of(rank) else ""
    yield f"{rank.place}: {rank.doing.value}{phase}"
    if rank.stack:
        yield f"{rank.place}: its main thread is in {' > '.join(rank.stack[-4:])}"


def _scene(look: Look) -> Iterator[str]:
    """Where all wait, the most frequent first."""
    places = Counter(rank.pending.words for rank in look.ranks if rank.pending is not None)
    for words, count in places.most_common(4):
        yield f"{count} of {len(look.ranks)} ranks wait in {words}"


def _still(look: Look) -> str:
    silence = "no rank has begun an operation" if look.begun else "the log has not grown"
    return f"{silence} for {look.still:.0f} s"
