"""USR1 and TERM as a flag that a training loop asks at a step boundary."""

from __future__ import annotations

import signal
from types import FrameType

from hpctrain_job import exit_codes

EXIT_SAVED = exit_codes.SAVED
"""The exit code of a process that saved its state because it was told to stop."""


class Stop:
    """Remembers the first signal that asked for a stop; `name` is empty until then.

    The second TERM is left to the default action: who sends it does not want to wait.
    """

    def __init__(self) -> None:
        self.name = ""

    def __bool__(self) -> bool:
        return bool(self.name)

    def listen(self, *signals: signal.Signals) -> Stop:
        """Take over these signals, by default USR1 and TERM; only the main thread may do so."""
        for number in signals or (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._heard)
        return self

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        self.name = self.name or signal.Signals(number).name
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
