"""The demo's earlier runs: one that is done is shown again, one that was interrupted goes on."""

from __future__ import annotations

from hpctrain.command import Prepared, RunDirectory


def done(prepared: Prepared) -> RunDirectory | None:
    """The newest run of the same plan that ended well."""
    for run in _newest_first(prepared):
        jobs = [step.name for step in prepared.plan.steps if not step.here]
        if all(map(run.finished, jobs)) and (run.path / "run.json").is_file():
            return run
    return None


def unfinished(prepared: Prepared) -> RunDirectory | None:
    """The newest run of the same plan, when it may go on: it was interrupted before its job began."""
    newest = next(iter(_newest_first(prepared)), None)
    if newest is None or newest.metrics.exists():
        return None
    return newest


def _newest_first(prepared: Prepared) -> list[RunDirectory]:
    return prepared.earlier_runs()[::-1]
