"""What is known of a training at one moment: the values that `judgement` takes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Doing(enum.Enum):
    """What a rank's process does, by /proc."""

    STOPPED = "it is stopped (state T)"
    GONE = "it is gone without a word"
    LEFT = "it has ended in good order"
    IDLE = "it uses no processor and moves no bytes"
    BUSY = "it computes"
    MOVING = "it reads or writes"
    CHILD = "a child of it works"
    UNKNOWN = "its process cannot be seen from outside"
    SILENT = "its node writes no word any more"


@dataclass(frozen=True)
class Operation:
    """One collective operation of a group of ranks."""

    group: str
    number: int
    name: str
    size: str = ""
    """The sizes of its tensors."""

    @property
    def words(self) -> str:
        return f"{self.name} {self.number} of group {self.group}"


@dataclass(frozen=True)
class Rank:
    """One rank as its own thread and its node tell of it."""

    rank: int
    node: str
    node_rank: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)
    """By group, how many operations it has begun."""
    pending: Operation | None = None
    """The first that it has begun and that is not complete."""
    order: str = ""
    """The shape of the operation before that one, and its own."""
    orders: frozenset[str] = frozenset()
    """All such pairs that it has completed."""
    stack: tuple[str, ...] = ()
    """Its main thread, outermost first: `file:function`."""
    doing: Doing = Doing.UNKNOWN
    watched: float = 0.0
    """For how many seconds its process has been looked at."""

    @property
    def place(self) -> str:
        return f"rank {self.rank} on {self.node}"


@dataclass(frozen=True)
class Look:
    """A training at one moment."""

    still: float
    """Seconds since any number of any rank changed; where no rank has numbers, since the log grew."""
    ranks: tuple[Rank, ...] = ()
    members: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The ranks of each group."""

    @property
    def begun(self) -> int:
        """The most operations of any group."""
        return max((number for rank in self.ranks for number in rank.numbers.values()), default=0)


class Kind(enum.Enum):
    """What a verdict says; the value is the sentence's beginning."""

    WELL = "nothing hangs"
    STOPPED = "its process is stopped"
    DIED = "it died while others wait for it"
    LEFT = "it ended while others wait for it"
    SILENT = "its node is silent"
    STUCK = "others wait for it and it waits for nobody: its device, kernel or network stands still"
    IDLE = "it does nothing while others wait for it"
    BUSY = "it computes while others wait for it, and does not come"
    LONG = "it works on something else while others wait for it, far longer than ever before"
    MISMATCH = "it is in another operation than the others of its group"
    ORDER = "it is in an operation that never came behind the one before: it left one out"
    START = "the start takes very long"
    NETWORK = "all wait, and nobody is to blame: the network, or a fault of all"
    LOG = "no line in the log for very long; the trainer's ranks cannot be seen, so that nobody is named"


@dataclass(frozen=True)
class Verdict:
    """Who hangs, and by what; `ranks` is empty where nobody is named."""

    kind: Kind
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    node_ranks: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[Kind, tuple[int, ...]]:
        """What two verdicts must share to be the same."""
        return self.kind, self.ranks

    @property
    def hangs(self) -> bool:
        return self.kind is not Kind.WELL
