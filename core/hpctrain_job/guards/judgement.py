"""What a leader does next: a pure function of what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpctrain_job.exit_codes import CONFIG, DIVERGED, SAVED
from hpctrain_job.guards.board import Beat, Order, Phase, State

TELLING = (CONFIG, DIVERGED)
"""Exit codes by which a rank says why it ended: they count for more than that of one that lost its peer."""


@dataclass(frozen=True)
class Terms:
    """When guards act; times in looks of `look` seconds."""

    look: float = 0.25
    beat: int = 4
    """Between two beats of a node of which nothing changed."""
    silent: int = 32
    """Without a beat: the node is dead, or nobody can know."""
    unborn: int = 240
    """The same of one that never beat."""
    settle: int = 20
    """So long a halt waits for nodes that it can do without."""
    stuck: int = 240
    """So long it waits for nodes that it needs and whose ranks do not go away."""
    straggling: int = 2400
    """So long ranks that ended well wait for the others."""

    @classmethod
    def of(cls, nodes: int) -> Terms:
        """For a job of so many nodes: with more of them each looks less often, so that the file server has at
        most 64 beats a second to take."""
        return cls(look=0.25 * max(1.0, nodes / 64))


@dataclass(frozen=True)
class View:
    """What the leader sees."""

    order: Order
    nodes: tuple[str, ...]
    """Of the allocation."""
    needed: int
    beats: Mapping[str, Beat] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    halted: int = 0
    """Looks since the attempt halts."""
    straggled: int = 0
    """Looks since the first node's ranks ended well."""

    def of_attempt(self, node: str) -> Beat | None:
        """The node's beat, where it follows the order."""
        beat = self.beats.get(node)
        return beat if beat is not None and beat.attempt == self.order.attempt else None


@dataclass(frozen=True)
class Halt:
    """The attempt is over: every rank of it ends."""

    code: int
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finish:
    """Every rank ended well."""

    code: int


@dataclass(frozen=True)
class AttemptOver:
    """All that is left of the attempt is known."""

    code: int
    standing: tuple[str, ...]
    """Nodes on which another may begin."""
    lost: tuple[str, ...] = ()


def next_step(view: View, terms: Terms) -> Halt | Finish | AttemptOver | None:
    """None: nothing is to be done."""
    if view.order.state is State.RUN:
        return _while_running(view, terms)
    return _while_halting(view, terms) if view.order.state is State.HALT else None


def _while_running(view: View, terms: Terms) -> Halt | Finish | None:
    beats = [view.of_attempt(node) for node in view.order.nodes]
    failed = [beat.code for beat in beats if beat and beat.phase is Phase.FAILED]
    if failed:
        return Halt(failed[0])
    done = [beat for beat in beats if beat and beat.phase in (Phase.DONE, Phase.IDLE)]
    if len(done) == len(beats):
        return Finish(SAVED if any(beat.code == SAVED for beat in done) else 0)
    lost = tuple(node for node in view.order.nodes if node in view.silent)
    if lost or view.straggled > terms.straggling:
        return Halt(1, lost)
    return None


def _while_halting(view: View, terms: Terms) -> AttemptOver | None:
    order = view.order
    lost = dict.fromkeys(order.lost)
    standing, late = [], []
    for node in view.nodes:
        beat = view.of_attempt(node)
        if node in view.silent:
            lost |= {node: None} if node in order.nodes else {}
        elif beat is not None and beat.is_gone and beat.phase is not Phase.RUNNING and node not in lost:
            standing.append(node)
        elif node not in lost:
            late.append(node)
    is_enough = len(standing) >= view.needed and view.halted >= terms.settle
    if late and not is_enough and view.halted < terms.stuck:
        return None
    lost |= dict.fromkeys(node for node in late if node in order.nodes)
    codes = [beat.code for node in order.nodes if (beat := view.of_attempt(node)) and beat.code in TELLING]
    return AttemptOver(codes[0] if codes else order.code, tuple(standing), tuple(lost))
