"""All runs of a user at once: one question to each cluster's scheduler, however many there are."""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from hpctrain.errors import HpctrainError
from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
from hpctrain.run.live import LiveRun, opened_run, scheduler_hooks, statuses
from hpctrain.run.outcome.settled import Outcome, Settled, outcome_of
from hpctrain.run.steps.status import RunState
from hpctrain.run.watch.vitals import Vitals
from hpctrain.run.watch.watching import Watched


def states_of(runs: Iterable[LiveRun]) -> dict[Path, RunState]:
    """The state of each; what this machine cannot say is left out, as of another cluster on a shared disk."""
    by_cluster: dict[str, list[LiveRun]] = defaultdict(list)
    for run in runs:
        by_cluster[run.graph.cluster].append(run)
    states: dict[Path, RunState] = {}
    for group in by_cluster.values():
        states |= _states_of_cluster(group)
    return states


def _states_of_cluster(runs: list[LiveRun]) -> dict[Path, RunState]:
    """By one question; where one of them cannot be read, of each that can."""
    try:
        return {state.directory: state for state in statuses(runs)}
    except HpctrainError:
        states = {}
        for run in runs:
            with contextlib.suppress(HpctrainError):
                states[run.directory.path] = run.status()
        return states


def opened(runs: Iterable[RunDirectory], environ: Mapping[str, str]) -> list[LiveRun]:
    """Those that can be read here."""
    lives = []
    hooks_of = functools.cache(lambda scheduler: scheduler_hooks(scheduler, environ))
    for run in runs:
        with contextlib.suppress(HpctrainError):  # its scheduler's plugin is missing, or it is another's
            lives.append(opened_run(run, environ, hooks_of))
    return lives


class Fleet:
    """The runs of a user that live, as they come and go."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._watched: dict[Path, Watched] = {}
        self._settled = Settled.of(environ)
        self._over: dict[Path, float] = {}
        """Runs that are over, with the time of their last event: `continue` makes one live again."""

    def vitals(self) -> list[Vitals]:
        """Every run that lives, newest first."""
        runs = [entry.run for entry in reversed(Registry.of(self.environ).entries())]
        fresh = [run for run in runs if run.path not in self._watched and self._may_live(run)]
        stale = [watched.live for watched in self._watched.values() if watched.is_stale]
        lives = [*opened(fresh, self.environ), *stale]
        states = states_of(lives)
        outcomes: dict[Path, Outcome] = {}
        for live in lives:
            path = live.directory.path
            if path in states and _lives(states[path]):
                watched = self._watched.get(path) or Watched(live)
                watched.take(states[path])
                self._watched[path] = watched
            else:
                self._over[path] = _changed_at(live.directory)
                self._watched.pop(path, None)
                outcomes[path] = outcome_of(live.directory, states.get(path))
        self._settled.note(outcomes, states)
        return [self._watched[run.path].vitals() for run in runs if run.path in self._watched]

    def _may_live(self, run: RunDirectory) -> bool:
        changed_at = _changed_at(run)
        if not changed_at or self._over.get(run.path) == changed_at:
            return False
        if self._settled.outcome(run) is None:
            return True
        self._over[run.path] = changed_at
        return False


def _lives(state: RunState) -> bool:
    """Whether something works on it, as far as its scheduler says or is silent about."""
    return state.is_in_progress or (state.state is State.UNKNOWN and bool(state.answer.silent))


def _changed_at(run: RunDirectory) -> float:
    """When the run's last event was recorded; 0 where it is gone."""
    try:
        return run.record.path.stat().st_mtime
    except OSError:
        return 0.0
