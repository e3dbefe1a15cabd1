"""The runs of the same plan that were started before, and how far the newest of them came. Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.errors import HpctrainError
from hpctrain.model.plan import Binding, EarlierRun, Plan
from hpctrain.model.train import Layout
from hpctrain.plan.chain import TRAIN
from hpctrain.run.disk.directory import RunDirectory

if TYPE_CHECKING:
    from hpctrain_job.resume import Checkpoint

ENOUGH_FAULTS = 3
"""From so many on, the time between them is worth more than what is published of other machines."""


def earlier_runs(plan: Plan, binding: Binding) -> list[RunDirectory]:
    """The runs of the same plan, the newest last."""
    root = binding.roots.get("runs")
    if not isinstance(root, str):
        return []
    runs = RunDirectory.all(Path(root, plan.run.name))
    return [run for run in runs if run.digest8 == plan.digest[:8]]


def newest(plan: Plan, binding: Binding) -> EarlierRun | None:
    """The newest of them with its newest checkpoint; the job that goes on from it compares the sums."""
    if plan.train is None:
        return None
    runs = earlier_runs(plan, binding)
    if not runs:
        return None
    run = runs[-1]
    checkpoint = _checkpoint(plan.train.checkpoints, binding, run)
    return EarlierRun(
        title=run.title,
        finished=run.finished(TRAIN),
        step=checkpoint.step if checkpoint else None,
        step_s=_step_seconds(run),
        save_s=_save_seconds(checkpoint.path) if checkpoint and plan.run.resources.is_chain else None,
        between_faults_s=_between_faults(run) if plan.run.resources.is_chain else None,
    )


def _checkpoint(layout: Layout | None, binding: Binding, run: RunDirectory) -> Checkpoint | None:
    root = binding.roots.get("checkpoints")
    if layout is None or not isinstance(root, str):
        return None
    from hpctrain_job import resume  # most runs are the first

    folder = Path(root, run.name, run.own_name, layout.folder)
    try:
        complete = resume.complete(folder, layout.name, layout.complete)
    except OSError:  # closed to us, or purged while we look
        return None
    return complete[-1] if complete else None


def _step_seconds(run: RunDirectory) -> float | None:
    """The pace of its last steps."""
    from hpctrain.run.watch.readings import Readings  # most runs are the first

    readings = Readings(run)
    try:
        readings.look()
    except (OSError, HpctrainError):
        return None
    return readings.trained.seconds_per_step


def _save_seconds(checkpoint: Path) -> float | None:
    """From the first file written to the last; what is written within a second tells nothing."""
    try:
        times = [path.stat().st_mtime for path in checkpoint.rglob("*") if path.is_file()]
    except OSError:
        return None
    seconds = max(times, default=0.0) - min(times, default=0.0)
    return seconds if seconds >= 1 else None


def _between_faults(run: RunDirectory) -> float | None:
    """The time of its attempts for each of its faults."""
    from hpctrain_job import attempts  # most runs have no chain

    try:
        tried = [a for a in attempts.Step(run.path, TRAIN).record().attempts if a.ended is not None]
    except (OSError, ValueError):  # a run of one job, or a record that is cut
        return None
    faults = sum(attempt.is_fault for attempt in tried)
    seconds = sum((attempt.ended or attempt.began) - attempt.began for attempt in tried)
    return seconds / faults if faults >= ENOUGH_FAULTS and seconds > 0 else None
