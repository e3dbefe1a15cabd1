"""Where the model of a run is: its newest whole checkpoint, and what was exported."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from hpctrain.run.kept import KeptPlan
from hpctrain.run.live import LiveRun
from hpctrain_job import resume
from hpctrain_job.resume import Checkpoint


@frozen(kw_only=True)
class Saved:
    """What a training left so far."""

    folder: Path
    """Where the trainer saves."""
    checkpoints: tuple[Checkpoint, ...]
    """The whole ones, oldest first."""
    exported: Path | None
    """The newest checkpoint in the format of `[checkpoint] export`."""

    @property
    def newest(self) -> Checkpoint | None:
        return self.checkpoints[-1] if self.checkpoints else None


def saved(live: LiveRun) -> Saved | None:
    """What is there now; None where the trainer does not say how it saves, or has not begun to."""
    plan = KeptPlan.of(live.directory.plan)
    layout, target = plan.train.checkpoints, plan.run.checkpoint.export
    folder = live.checkpoints()
    if layout is None or folder is None or not folder.is_dir():
        return None
    depth = len(Path(layout.folder).parts)
    root = folder.parents[depth - 1] if depth else folder
    exports = resume.complete(root / target, layout.name, "") if target else []
    return Saved(
        folder=folder,
        checkpoints=tuple(resume.complete(folder, layout.name, layout.complete)),
        exported=exports[-1].path if exports else None,
    )
