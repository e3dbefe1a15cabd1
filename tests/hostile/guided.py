"""Guided fuzzing of one reader: a file that reaches a new line of ours is damaged further."""

from __future__ import annotations

import random

from attrs import define, field

from tests.hostile.corpus import LARGEST as SMALL
from tests.hostile.corpus import MOST, corpus
from tests.hostile.damage import by_chance, of_document
from tests.hostile.finds import FINDS
from tests.hostile.place import Place
from tests.hostile.targets import FIRST, Target

LARGEST = 1 << 17
"""Bytes of a file that is damaged further; what is large is slow, and tells no more."""


@define
class Fuzzing:
    """What came of one reader."""

    target: Target
    executions: int = 0
    covered: set[int] = field(factory=set)
    possible: set[int] = field(factory=set)
    first: int = 0
    """The lines that the right file reached."""
    new: list[tuple[int, bytes]] = field(factory=list)
    """Small files that reached further, each with the number of lines that were new."""
    faults: dict[str, bytes] = field(factory=dict)

    @property
    def share(self) -> float:
        """Of the lines of the functions that ran."""
        return len(self.covered & self.possible) / max(1, len(self.possible))

    @property
    def best(self) -> list[bytes]:
        """The small files that reached most; of the readers of one file, those of the first."""
        if FIRST[self.target.ground, self.target.file] is not self.target:
            return []
        return [data for _, data in sorted(self.new, key=lambda pair: -pair[0])[:MOST]]


def seeds(place: Place, target: Target) -> list[bytes]:
    """What is right, every find, and what earlier sessions left in the corpus."""
    files = [place.right(target), *FINDS.get(target.name, {}).values(), *corpus(target)]
    return [data for data in files if len(data) <= LARGEST]


def damaged(target: Target, data: bytes, rng: random.Random) -> bytes:
    """The same file with something done to it."""
    if target.documents and rng.random() < 0.7:
        try:
            return next(of_document(data.decode(), rng, 1), ("", data))[1]
        except (ValueError, RecursionError):
            pass  # no document any more
    return next(by_chance(data, rng, 1))[1]


def fuzz(place: Place, target: Target, rng: random.Random, rounds: int) -> Fuzzing:
    """Damage upon damage, so many times."""
    done = Fuzzing(target)

    def ran(data: bytes | None) -> int:
        ended = place.run(target, data, cover=True)
        fresh = len(set(ended.covered) - done.covered)
        done.covered.update(ended.covered)
        done.possible.update(ended.possible)
        done.executions += 1
        if data is not None and (fault := place.fault(target, ended)):
            done.faults.setdefault(fault, data)
            return 0
        return fresh

    done.first = ran(None)
    assert done.first, "no line of ours ran"
    files = seeds(place, target)
    for data in files[1:]:
        if (fresh := ran(data)) and len(data) <= SMALL:
            done.new.append((fresh, data))
    for _ in range(rounds):
        data = damaged(target, rng.choice(files), rng)
        if (fresh := ran(data)) and len(data) <= LARGEST:
            files.append(data)
            if len(data) <= SMALL:
                done.new.append((fresh, data))
    return done
