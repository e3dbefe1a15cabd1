"""Fixtures of the twins: import `twin` into a conftest.py."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import needs
from tests.twin import rootfs
from tests.twin.life import NoTwin, Twin

Start = Callable[[str], Twin]
_numbers = itertools.count()


def _started() -> Iterator[Start]:
    """`start("frontier")`: that twin, up; the same one again until the end."""
    reason = rootfs.missing()
    needs("twin", not reason, reason)
    try:
        rootfs.ensure()
    except rootfs.NoRoot as error:
        needs("twin", False, str(error))
    running: dict[str, Twin] = {}

    def start(name: str) -> Twin:
        if name not in running:
            fresh = Twin(f"{name}-{os.getpid()}.{next(_numbers)}", name)
            try:
                running[name] = fresh.up(tied=True)
            except (NoTwin, rootfs.NoRoot) as error:
                needs("twin", False, str(error))
        return running[name]

    yield start
    for one in running.values():
        one.down()


@pytest.fixture(scope="module")
def twin() -> Iterator[Start]:
    """Twins that the tests of one module share.

    A twin is up in half a second, and what one module leaves on it is never what another one stands on.
    """
    yield from _started()


@pytest.fixture
def own_twin() -> Iterator[Start]:
    """Twins of one test alone, for tests that compare all that is there, or break it."""
    yield from _started()


@pytest.fixture(scope="module")
def accounted(twin: Start) -> Iterator[Twin]:
    """Frontier with Slurm's accounting, shared by the tests of one module."""
    twin("frontier")  # or a skip that says why not
    one = Twin(f"accounted-{os.getpid()}", "frontier").up(tied=True, accounting=True)
    yield one
    one.down()


@pytest.fixture(scope="module")
def torch(twin: Start) -> None:
    """An environment with torch is in the twins; or a skip that says why not."""
    named = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(named), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
