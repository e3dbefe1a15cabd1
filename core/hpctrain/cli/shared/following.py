"""The line of a run below the output of a command that stays while it goes on."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from hpctrain.cli.out import Out
from hpctrain.cli.show import live_line
from hpctrain.run.live import LiveRun
from hpctrain.run.watch.watching import Watched
from hpctrain.ui.status_line import StatusLine


class Following:
    """The line of a run, on stderr, in a `with`; nothing with --quiet and --json."""

    def __init__(self, out: Out, live: LiveRun) -> None:
        self.watched = Watched(live)
        silent = out.flags.quiet or out.flags.json
        self._line = None if silent else StatusLine(lambda: out.terminal(sys.stderr))

    def __enter__(self) -> Following:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def tick(self) -> None:
        """Draw the line again where it has changed."""
        if self._line is not None:
            vitals = self.watched.vitals()
            self._line.show(lambda term: live_line.line(vitals, time.time(), term), vitals.state.value)

    def hide(self) -> None:
        """Make room for other output."""
        if self._line is not None:
            self._line.hide()
