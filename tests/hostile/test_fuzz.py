"""Readers on files that grew from one another.

A run that is no soak is the same in every place and after every change of ours: it replays the corpus, which
is in the repository, and damages it from a seed. What is new is looked for by `make soak`, guided by the
lines that a file reaches; a find is written to .cache/finds, and its bytes are added to `finds.py`.
"""

from __future__ import annotations

import os
import random
import secrets
import zlib
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.hostile.corpus import corpus
from tests.hostile.guided import damaged, fuzz, seeds
from tests.hostile.place import Place
from tests.hostile.targets import FIRST, TARGETS, Target

SOAK = int(os.environ.get("HPCTRAIN_SOAK", "0"))
ROUNDS = 6
SEED = os.environ.get("HPCTRAIN_SEED") or (secrets.token_hex(4) if SOAK else "1")
"""A soak's is by chance, and printed with its finds."""


def replayed(place: Place, target: Target) -> Iterator[bytes]:
    """A function of the files of the repository alone."""
    yield from corpus(target)
    files = seeds(place, target)
    if FIRST[target.ground, target.file] is target and files:
        for number in range(ROUNDS):
            rng = random.Random(f"{target.name} {number}")
            yield damaged(target, rng.choice(files), rng)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damage_upon_damage(place: Place, target: Target) -> None:
    faults = {}
    for data in replayed(place, target):
        if fault := place.fault(target, place.run(target, data)):
            faults[fault] = data
    if SOAK:
        faults |= fuzz(place, target, random.Random(f"{target.name} {SEED}"), 20 * SOAK).faults
    assert not faults, f"seed {SEED}: {[(fault, _kept(target, data)) for fault, data in faults.items()]}"


def _kept(target: Target, data: bytes) -> str:
    """Where the bytes of a find are afterwards."""
    name = f"{target.name}-{zlib.crc32(data):08x}".replace("/", "-").replace(" ", "-")
    file = ROOT / ".cache/finds" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return str(file)


def test_attacks_are_the_same_wherever_they_are_made(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In a folder of another length, at another moment: no run elsewhere meets what none met here."""
    other = Place(tmp_path_factory.mktemp("a-longer-name-for-the-same"), place.cage)
    attacks = [
        {target.name: (at.right(target), *replayed(at, target)) for target in FIRST.values()}
        for at in (place, other)
    ]
    assert [name for name, files in attacks[0].items() if files != attacks[1][name]] == []
