"""The runs of the same plan that were started before, and how far the newest of them came. Reads only."""

from __future__ import annotations

from pathlib import Path

from hpctrain.model.plan import Binding, EarlierRun, Plan
from hpctrain.model.train import Layout
from hpctrain.plan.chain import TRAIN
from hpctrain.run.directory import RunDirectory


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
    step = _step(plan.train.checkpoints, binding, runs[-1])
    return EarlierRun(title=runs[-1].title, finished=runs[-1].finished(TRAIN), step=step)


def _step(layout: Layout | None, binding: Binding, run: RunDirectory) -> int | None:
    root = binding.roots.get("checkpoints")
    if layout is None or not isinstance(root, str):
        return None
    from hpctrain_job import resume

    folder = Path(root, run.name, run.path.name, layout.folder)
    try:
        complete = resume.complete(folder, layout.name, layout.complete)
    except OSError:  # closed to us, or purged while we look
        return None
    return complete[-1].step if complete else None
