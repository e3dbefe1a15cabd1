"""Ctrl-C waits while a program is started: it would leave one behind that nobody knows."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Keep what would end us back until the end of the block; its handler is called there.

    Only in the main thread, the one whose work a signal interrupts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {n: handler for n in ENDS if callable(handler := signal.getsignal(n))}
    arrivals: list[tuple[int, FrameType | None]] = []
    for number in handlers:
        signal.signal(number, lambda number, frame: arrivals.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for arrived, frame in arrivals:
        handlers[signal.Signals(arrived)](arrived, frame)
