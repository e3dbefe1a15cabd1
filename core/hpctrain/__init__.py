"""hpctrain: train language models on other people's supercomputers.

Names are loaded on first use, so that `hpctrain --help` stays as light as Python itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing costs more than all the rest
if TYPE_CHECKING:
    from typing import Any

    from hpctrain.errors import HpctrainError, JobFailed, Problem, TimedOut
    from hpctrain.hooks.marker import hookimpl
    from hpctrain.model.job import State
    from hpctrain.run.find import open_run
    from hpctrain.run.live import LiveRun
    from hpctrain.session import Session

_HOMES = {
    "HpctrainError": "hpctrain.errors",
    "JobFailed": "hpctrain.errors",
    "LiveRun": "hpctrain.run.live",
    "Problem": "hpctrain.errors",
    "Session": "hpctrain.session",
    "State": "hpctrain.model.job",
    "TimedOut": "hpctrain.errors",
    "hookimpl": "hpctrain.hooks.marker",
    "open_run": "hpctrain.run.find",
}

__all__ = [
    "HpctrainError",
    "JobFailed",
    "LiveRun",
    "Problem",
    "Session",
    "State",
    "TimedOut",
    "hookimpl",
    "open_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpctrain' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
