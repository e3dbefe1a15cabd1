"""Every reader on hostile files: the right class of error, no traceback, nothing done, in bounds."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.hostile.damage import ANYTHING, by_chance, of_document
from tests.hostile.finds import FINDS
from tests.hostile.place import Place
from tests.hostile.targets import RUN_FILES, TARGETS, Target

SOAK = int(os.environ.get("HPCTRAIN_SOAK", "0"))
EACH = 4
"""Cases of each kind in a run that is no soak, besides all finds; each target takes others of the table."""


def cases(target: Target, right: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each hostile file, the same in every run."""
    rng = random.Random(target.name)
    yield from FINDS.get(target.name, {}).items()
    yield from ANYTHING.items() if SOAK else rng.sample(sorted(ANYTHING.items()), EACH)
    count = EACH + 10 * SOAK
    if target.documents:
        yield from of_document(right.decode(), rng, count)
    yield from by_chance(right, rng, count)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_reader_on_hostile_files(place: Place, target: Target) -> None:
    right = place.run(target, None)
    assert right.code == 0, right.out
    faults = {}
    for name, data in cases(target, place.right(target)):
        if said := place.fault(target, place.run(target, data)):
            faults[name] = said
    assert not faults


def test_there_are_enough() -> None:
    """Finds alone, without what is made by chance."""
    assert sum(len(FINDS.get(target.name, ())) + EACH * 2 for target in TARGETS) > 300
    unknown = set(FINDS) - {target.name for target in TARGETS}
    assert all(name.partition(" ")[0] in RUN_FILES for name in unknown), "no target has this name"
