"""What is read of `plan.json` once a run is made: how its trainer names checkpoints and prints progress."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

from hpctrain.errors import IntegrityError
from hpctrain.model.train import Layout, Pattern
from hpctrain.plan.decode import decode
from hpctrain_job.files import documents

_BELOW = re.compile(r"(?!/)(?:(?!\.\./|\.\.\Z)[^\0/]{1,255}(?:/+|\Z)){0,64}")
"""A path below a folder, of a length that there can be."""
UNREADABLE = (OSError, ValueError, TypeError, AttributeError, re.error, RecursionError, OverflowError)


@frozen(kw_only=True)
class KeptNumbers:
    """What the plan predicted."""

    hardware: float | None = None
    steps: int | None = None
    tokens_per_step: int | None = None


@frozen(kw_only=True)
class KeptTrain:
    """What the trainer answered, without its command."""

    checkpoints: Layout | None = None
    progress: tuple[Pattern, ...] = ()
    numbers: KeptNumbers | None = None


@frozen(kw_only=True)
class KeptCheckpoint:
    """What the run file says of checkpoints."""

    export: str = ""


@frozen(kw_only=True)
class KeptRun:
    """What is read of the run file."""

    checkpoint: KeptCheckpoint = KeptCheckpoint()


@frozen(kw_only=True)
class KeptPlan:
    """A plan as its run keeps it; it is never planned again."""

    run: KeptRun = KeptRun()
    train: KeptTrain = KeptTrain()
    peak_tflops: float | None = None

    @property
    def steps(self) -> int | None:
        """How many steps of training were planned; None where the plan could not count them."""
        return self.train.numbers.steps if self.train.numbers else None

    @classmethod
    def of(cls, path: Path) -> KeptPlan:
        """The plan in this file; IntegrityError where there is none that can be read."""
        try:
            document = documents.read(path)
            plan = decode(document if document.get("train") else {**document, "train": {}}, cls)
            for pattern in plan.train.progress:
                re.compile(pattern.regex)
            _check_layout(plan.train.checkpoints)
        except UNREADABLE as error:
            raise IntegrityError.of("plan-file", f"{path} cannot be read: {error}") from error
        return plan


def _check_layout(layout: Layout | None) -> None:
    """Refuse places that lead out of the run's checkpoints; the plan may be a stranger's."""
    for place in (layout.folder, layout.complete, layout.pointer) if layout else ():
        if not _BELOW.fullmatch(place):
            raise ValueError(f"{place[:80]!r} is no path below the checkpoints")
