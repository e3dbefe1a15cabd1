"""What a plugin may do while it is imported: end within a time, and print nothing that looks like ours."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

AGAIN = 1.0
"""Seconds until a plugin that caught the interruption meets the next one."""


class TookTooLong(BaseException):
    """Not an Exception, which code that waits for a server often catches to try again."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block when it lasts longer.

    Only Python's main thread can be interrupted: a program that plans in another one waits.
    """

    def over(*_: object) -> None:
        raise TookTooLong(f"it did not end within {seconds:g} s")

    try:
        before = signal.signal(signal.SIGALRM, over)
    except ValueError:
        yield
        return
    began = time.monotonic()
    callers, repeated = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
        if callers:
            signal.setitimer(signal.ITIMER_REAL, max(callers - (time.monotonic() - began), 0.001), repeated)


@contextmanager
def quoting_prints(label: str) -> Iterator[None]:
    """What the block prints is no answer of a command: it is quoted on stderr."""
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        for line in printed.getvalue().splitlines():
            print(f"hpctrain: {label} printed {line!r} when it was imported", file=sys.stderr)
