"""Who hangs in a run, as the watch beside its ranks wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.status import StepState

if TYPE_CHECKING:
    from hpctrain_job.hangs.verdicts import Written

FILE = "hangs.jsonl"


def hanging(directory: RunDirectory, step: StepState) -> Written | None:
    """The verdict on the step's job, while it holds; None for most runs, for which nothing more is read."""
    return verdict_of(directory, step.step, step.job)


def verdict_of(directory: RunDirectory, step: str, job: str) -> Written | None:
    """The newest on this job of the step, also once it is over."""
    folder = directory.step(step)
    if not (folder / FILE).is_file():
        return None
    from hpctrain_job.hangs import verdicts  # only of a training that hung

    return verdicts.newest(folder, job)
