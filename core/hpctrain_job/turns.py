"""What a user's commands and jobs must not do at the same time, they do in turns."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def one_at_a_time(lock: Path, seconds: float) -> Iterator[None]:
    """Wait for one's turn; who cannot have it in time, or on a disk without locks, goes on without."""
    with lock.open("a") as file:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        yield
