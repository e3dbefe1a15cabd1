"""The demo's earlier runs: one that is done is shown again, one that was interrupted goes on."""

from __future__ import annotations

from pathlib import Path

from hpctrain.run.directory import RunDirectory
from hpctrain.session import Session


def done(session: Session) -> RunDirectory | None:
    """The newest run of the same plan that ended well."""
    for run in _same(session):
        jobs = [step.name for step in session.plan().steps if not step.here]
        if all(map(run.finished, jobs)) and (run.path / "run.json").is_file():
            return run
    return None


def unfinished(session: Session) -> RunDirectory | None:
    """The newest run of the same plan, when it may go on: it was interrupted before its job began."""
    newest = next(iter(_same(session)), None)
    if newest is None or newest.metrics.exists():
        return None
    return newest


def _same(session: Session) -> list[RunDirectory]:
    root = session.binding.roots["runs"]
    assert isinstance(root, str)
    runs = RunDirectory.all(Path(root) / session.run.name)
    digest8 = session.plan().digest[:8]
    return [run for run in reversed(runs) if run.digest8 == digest8]
