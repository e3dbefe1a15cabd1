"""Every reader on hostile files: the right class of error, no traceback, nothing done, in bounds."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.hostile.damage import ANYTHING, by_chance, of_document
from tests.hostile.finds import FINDS
from tests.hostile.place import Place
from tests.hostile.targets import CHAIN_FILES, FIRST, RUN_FILES, TARGETS, Target

SOAK = int(os.environ.get("HPCTRAIN_SOAK", "0"))
EACH, FEWER = 4, 1
"""Cases of each kind in a run that is no soak, besides all finds; each target takes others of the table. Who
reads a file that another one reads takes fewer."""


def cases(target: Target, right: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each hostile file, the same in every run."""
    rng = random.Random(target.name)
    yield from FINDS.get(target.name, {}).items()
    count = 10 * SOAK + (EACH if FIRST[target.ground, target.file] is target else FEWER)
    yield from ANYTHING.items() if SOAK else rng.sample(sorted(ANYTHING.items()), count)
    if target.documents:
        yield from of_document(right.decode(), rng, count)
    yield from by_chance(right, rng, count)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_reader_on_hostile_files(place: Place, target: Target) -> None:
    right = place.run(target, None)
    assert right.code in target.right, right.out
    faults = {}
    for name, data in cases(target, place.right(target)):
        if said := place.fault(target, place.run(target, data)):
            faults[name] = said
    assert not faults


def test_there_are_enough() -> None:
    """Of every file, of every reader together."""
    assert len(FIRST) > 60
    assert sum(len(FINDS.get(target.name, ())) + FEWER * 2 for target in TARGETS) > 300
    unknown = set(FINDS) - {target.name for target in TARGETS}
    tables = {**RUN_FILES, **CHAIN_FILES}
    assert all(name.partition(" ")[0] in tables for name in unknown), "no target has this name"
