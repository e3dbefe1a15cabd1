"""A run that is watched: its state is asked for now and then, what its trainer writes is read as it grows."""

from __future__ import annotations

import time

from hpctrain.model.job import State
from hpctrain.run.live import LiveRun
from hpctrain.run.steps.status import RunState
from hpctrain.run.watch.readings import Readings
from hpctrain.run.watch.vitals import Vitals, vitals

STATE_SECONDS = 5.0
"""So often the records of jobs are read; the scheduler is asked as seldom as the site wants."""


class Watched:
    """One run and what is known of it."""

    def __init__(self, live: LiveRun) -> None:
        self.live = live
        self.readings = Readings(live.directory)
        self._state: RunState | None = None
        self._asked_at = 0.0

    @property
    def is_stale(self) -> bool:
        """Whether it is time to ask for the state again."""
        return self._state is None or not 0 <= time.time() - self._asked_at < STATE_SECONDS

    @property
    def state(self) -> RunState:
        """The state of the run and its steps, a few seconds old at most."""
        if self._state is None or self.is_stale:
            return self.take(self.live.status())
        return self._state

    def take(self, state: RunState) -> RunState:
        """Keep a state that was asked for just now."""
        self._state, self._asked_at = state, time.time()
        return state

    def states(self) -> dict[str, State]:
        """Each step's state."""
        return {step.step: step.state for step in self.state.steps}

    def vitals(self) -> Vitals:
        """What is known now."""
        state = self.state
        self.readings.look()
        return vitals(
            self.live.directory.title, self.live.graph.cluster, state, self.readings.trained, self._asked_at
        )
