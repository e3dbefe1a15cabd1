"""Something that is looked at again and again in a thread: a scheduler may think for a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """The newest answer of `look`, which is called in a thread of its own, `seconds` after each answer."""

    def __init__(self, look: Callable[[], T], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._newest: T | None = None
        self._error: BaseException | None = None
        self._arrived = threading.Event()
        # a thread that still waits for a scheduler does not keep the program from ending
        threading.Thread(target=self._run, daemon=True).start()

    def newest(self, wait_s: float = 0.0) -> T | None:
        """The newest answer; None while there is none. An error of `look` is raised here."""
        self._arrived.wait(wait_s)
        if self._error is not None:
            raise self._error
        return self._newest

    def _run(self) -> None:
        while self._error is None:
            try:
                self._newest = self._look()
            except BaseException as error:
                self._error = error
            self._arrived.set()
            time.sleep(self._seconds)
