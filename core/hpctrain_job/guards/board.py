"""What guards write for each other, in one folder of the run."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hpctrain_job.files import documents

WIDTH = 128
"""Bytes of a beat: always as many, so that it is written over in place and never read in halves."""


class Phase(enum.Enum):
    """How the ranks of a node are."""

    IDLE = "idle"
    """It has none in this attempt."""
    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"
    """All of them ended well: with 0, or 75 after saving."""
    STOPPED = "stopped"
    """Ended by its guard, because the attempt halts."""


class State(enum.Enum):
    """What an order says."""

    RUN = "run"
    HALT = "halt"
    OVER = "over"


@dataclass(frozen=True)
class Beat:
    """A sign of life."""

    count: int
    attempt: int = 0
    """The order that this node follows."""
    phase: Phase = Phase.IDLE
    code: int = 0
    is_gone: bool = True
    """Whether no process of its ranks is left."""
    is_ending: bool = False
    """Whether the scheduler, or a person, told it to end."""


@dataclass(frozen=True)
class Order:
    """What all nodes do."""

    attempt: int
    nodes: tuple[str, ...]
    state: State = State.RUN
    tell: str = ""
    """A signal for every rank."""
    code: int = 0
    lost: tuple[str, ...] = ()


class Board:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes of the allocation."""
        return tuple((self.folder / "nodes").read_text(encoding="utf-8").split())

    @property
    def signal(self) -> str:
        """The signal that job.sh heard; empty: none."""
        try:
            return (self.folder / "signal").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return ""

    def write_beat(self, node: str, beat: Beat) -> None:
        fields = {**asdict(beat), "phase": beat.phase.value}
        line = json.dumps(fields, separators=(",", ":")).encode()
        descriptor = os.open(self.folder / f"beat.{node}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, line.ljust(WIDTH - 1) + b"\n", 0)
        finally:
            os.close(descriptor)

    def beat(self, node: str) -> Beat | None:
        """The last one of a node; None before the first."""
        try:
            fields = documents.read(self.folder / f"beat.{node}")
            count, attempt, code = (int(fields[key]) for key in ("count", "attempt", "code"))
            is_gone, is_ending = (fields[key] is True for key in ("is_gone", "is_ending"))
            return Beat(count, attempt, Phase(fields["phase"]), code, is_gone, is_ending)
        except (FileNotFoundError, ValueError, TypeError, LookupError, OverflowError):
            return None

    def order(self) -> Order | None:
        """The one that holds; None before the first."""
        try:
            fields = documents.read(self.folder / "order")
        except FileNotFoundError:
            return None
        sequences = {key: tuple(fields[key]) for key in ("nodes", "lost")}
        return Order(**{**fields, **sequences, "state": State(fields["state"])})

    def write_order(self, order: Order) -> None:
        self._write("order", json.dumps({**asdict(order), "state": order.state.value}))

    def claim(self, attempt: int) -> bool:
        """Whether it is ours to order this attempt."""
        try:
            os.close(os.open(self.folder / f"claim.{attempt}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def end(self, code: int, lost: Sequence[str]) -> None:
        """Say to job.sh how it ended."""
        self._write("over", f"{code} {' '.join(lost)}\n")

    @property
    def is_closing(self) -> bool:
        """Whether somebody ends the job: job.sh, or the leader where that is dead."""
        return (self.folder / "closing").exists()

    def close(self) -> bool:
        """Whether it is ours to end the job."""
        try:
            (self.folder / "closing").mkdir(mode=0o700)
        except FileExistsError:
            return False
        return True

    def _write(self, name: str, text: str) -> None:
        fresh = self.folder / f".{name}.{os.uname().nodename}.{os.getpid()}"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.folder / name)
