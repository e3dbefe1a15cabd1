"""Readers on files that grow from one another: what reaches a new line of ours is damaged further.

It begins with what is right and with every find. `make soak` gives it longer; a find's bytes are printed,
and are added to `finds.py`.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.hostile.damage import by_chance, of_document
from tests.hostile.finds import FINDS
from tests.hostile.place import Place
from tests.hostile.targets import TARGETS, Target

SOAK = int(os.environ.get("HPCTRAIN_SOAK", "0"))
ROUNDS = 20 * SOAK or 3
SEED = os.environ.get("HPCTRAIN_SEED", "1")
LARGEST = 1 << 17
"""Bytes of a file that is damaged further; what is large is slow, and tells no more."""
FIRST = {target.file: target for target in reversed(TARGETS)}
"""One reader of each file: its others find what this one found."""
READERS = TARGETS if SOAK else tuple(FIRST.values())


@pytest.mark.parametrize("target", READERS, ids=lambda target: target.name)
def test_damage_upon_damage(place: Place, target: Target) -> None:
    rng = random.Random(f"{target.name} {SEED}")
    known = set(place.run(target, None, cover=True).covered)
    assert known, "no line of ours ran"
    corpus = [place.right(target), *FINDS.get(target.name, {}).values()]
    corpus = [data for data in corpus if len(data) <= LARGEST]
    for _ in range(ROUNDS):
        data = _damaged(target, rng.choice(corpus), rng)
        ended = place.run(target, data, cover=True)
        assert not place.fault(target, ended), data
        if len(data) <= LARGEST and not known.issuperset(ended.covered):
            known.update(ended.covered)
            corpus.append(data)


def _damaged(target: Target, data: bytes, rng: random.Random) -> bytes:
    if target.documents and rng.random() < 0.7:
        try:
            return next(of_document(data.decode(), rng, 1), ("", data))[1]
        except (ValueError, RecursionError):
            pass  # no document any more
    return next(by_chance(data, rng, 1))[1]
