"""How long a test waits. Limits are those of a quiet machine; `HPCTRAIN_PATIENCE` says how often they
may pass on this one, as when two test runs share its cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = float(os.environ.get("HPCTRAIN_PATIENCE", "1"))


def wait_for(what: str, check: Callable[[], object], seconds: float = 30) -> None:
    """Poll until `check()` is true; a test never waits without a limit."""
    end = time.monotonic() + seconds * PATIENCE
    while not check():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds * PATIENCE:g} s")
        time.sleep(0.03)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail when what is done here takes longer: a limit far below what it takes when it waits in vain."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < seconds * PATIENCE, f"{took:.1f} s, where {seconds * PATIENCE:g} s are allowed"
