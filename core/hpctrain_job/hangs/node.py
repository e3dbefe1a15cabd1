"""One node's ranks, look by look: their pulses, their processes, and how long nothing has moved."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents
from hpctrain_job.hangs import groups, judgement, processes
from hpctrain_job.hangs.evidence import Doing, Operation, Rank
from hpctrain_job.hangs.processes import Sample
from hpctrain_job.hangs.pulse import ASK
from hpctrain_job.hangs.thresholds import Thresholds

Document = Mapping[str, Any]
SHORTEST = 1.0
"""Seconds; shorter pauses than two ticks of a pulse are none."""
RECENT = 100
WATCH = "watch"
"""The file in the folder that says which process watches."""


class Node:
    """What the watch of a node keeps from one look to the next."""

    def __init__(self, folder: Path, name: str, node_rank: int, terms: Thresholds, now: float) -> None:
        self.folder = folder
        self.name = name
        self.node_rank = node_rank
        self.terms = terms
        self.moved_at = now
        self.documents: dict[int, Document] = {}
        self._pauses: deque[float] = deque([0.0], maxlen=RECENT)
        self._phase_pause = 0.0
        self._phase = ""
        self._samples: dict[int, deque[Sample]] = {}
        self._asked_at = now

    @property
    def limits(self) -> Thresholds:
        """The thresholds, stretched by what this run has shown."""
        return self.terms.learned(max(self._pauses), self._phase_pause)

    @property
    def pids(self) -> list[int]:
        """The processes of the ranks that live."""
        return [int(d["pid"]) for d in self.documents.values() if _lives(d)]

    def look(self, now: float) -> None:
        """Read the pulses, and the processes once nothing moves."""
        before = {rank: document["numbers"] for rank, document in self.documents.items()}
        self._read()
        if before != {rank: document["numbers"] for rank, document in self.documents.items()}:
            self._moved(now)
        still = now - self.moved_at
        if still >= self.terms.suspect / 2:
            self._sample(now)
            self._phase = self._phase or next(filter(None, map(judgement.phase_of, self.ranks())), "")
            if now - self._asked_at >= self.terms.suspect / 2:
                self._asked_at = now
                with contextlib.suppress(OSError):
                    (self.folder / ASK).touch(0o600)

    def ranks(self) -> list[Rank]:
        """Its ranks as values, in their order."""
        return [self._rank(document) for _, document in sorted(self.documents.items())]

    def _read(self) -> None:
        for path in self.folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                document = checked(documents.read(path))
                last = self.documents.get(document["rank"])
                if last is None or document["at"] >= last["at"]:
                    self.documents[document["rank"]] = document

    def _moved(self, now: float) -> None:
        pause = now - self.moved_at
        begun = max((n for d in self.documents.values() for n in d["numbers"].values()), default=0)
        if pause >= SHORTEST and begun > self.terms.young:
            if self._phase:
                self._phase_pause = max(self._phase_pause, pause)
            else:
                self._pauses.append(pause)
        self.moved_at, self._phase = now, ""
        self._samples.clear()

    def _sample(self, now: float) -> None:
        for rank, document in self.documents.items():
            if not _is_same(document):
                continue  # it has ended, or has another number in a container
            if look := processes.sample(document["pid"], now):
                looks = self._samples.setdefault(rank, deque())
                looks.append(look)
                while looks[-1].at - looks[0].at > 2 * self.terms.watch:
                    looks.popleft()

    def _rank(self, document: Document) -> Rank:
        looks = self._samples.get(document["rank"])
        pending = document.get("pending")
        return Rank(
            rank=document["rank"],
            node=self.name,
            node_rank=self.node_rank,
            numbers=document["numbers"],
            pending=Operation(*pending) if pending else None,
            order=document["order"],
            orders=frozenset(document["orders"]),
            stack=tuple(map(str, document["stack"])),
            doing=self._doing(document, looks),
            watched=looks[-1].at - looks[0].at if looks else 0.0,
        )

    def _doing(self, document: Document, looks: deque[Sample] | None) -> Doing:
        if document["over"]:
            return Doing.LEFT
        if not _lives(document):
            return Doing.GONE if looks or self._is_visible(document) else Doing.UNKNOWN
        return processes.doing(looks) if looks else Doing.UNKNOWN

    def _is_visible(self, document: Document) -> bool:
        """Whether processes of this node have the numbers outside that they write themselves."""
        return any(_is_same(peer) for peer in self.documents.values() if peer is not document)


def is_left(folder: Path) -> bool:
    """Whether all ranks that wrote there are gone; where none has, whether the watch is."""
    pulses = []
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            pulses.append(checked(documents.read(path)))
    if pulses:
        return not any(map(_lives, pulses))
    with contextlib.suppress(OSError, ValueError):
        pid, _, born = (folder / WATCH).read_text(encoding="utf-8").partition(" ")
        return processes.born(int(pid)) != born
    return False


def checked(document: Any) -> Document:
    """A pulse that is whole; else a ValueError, KeyError or TypeError."""
    if not isinstance(document, dict):
        raise TypeError("a pulse is a table")
    pulse: dict[str, Any] = {"order": "", "orders": [], **document}
    types = {
        "order": str,
        "orders": list,
        "rank": int,
        "pid": int,
        "at": float,
        "born": str,
        "over": bool,
        "numbers": dict,
        "members": dict,
    }
    for key, expected in {**types, "stack": list}.items():
        if not isinstance(pulse[key], expected):
            raise TypeError(f"{key} is not of its type")
    if not all(isinstance(number, int) for number in pulse["numbers"].values()):
        raise ValueError("numbers are numbers")
    if pulse.get("pending") is not None:
        group, number, name, size = pulse["pending"]
        pulse["pending"] = (str(group), int(number), str(name), str(size))
    pulse["orders"] = list(map(str, pulse["orders"]))
    for packed in pulse["members"].values():
        groups.unpack(str(packed))
    return pulse


def _is_same(document: Document) -> bool:
    return bool(document["born"]) and processes.born(document["pid"]) == document["born"]


def _lives(document: Document) -> bool:
    """Whether its process is there and not a corpse whose parent has not looked yet."""
    return _is_same(document) and processes.sample(document["pid"], 0.0) is not None
