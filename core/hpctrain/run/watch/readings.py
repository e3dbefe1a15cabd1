"""The metrics of a run that lives, read as they grow: each byte once, and in little memory."""

from __future__ import annotations

import contextlib
from collections import deque

from hpctrain.errors import HpctrainError
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.kept_plan import KeptPlan
from hpctrain.run.output.growing import Growing
from hpctrain.run.output.metrics import Row, completed
from hpctrain.run.watch.curve import Curve
from hpctrain.run.watch.vitals import Trained, pace
from hpctrain_job import metrics

RECENT = 20
"""Training rows that tell the pace."""
TRAIN = "train"
LARGEST = 10**12
"""No training has more steps, and no moment more seconds."""


class Readings:
    """What the trainer wrote so far, or printed where it writes no file."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.plan = KeptPlan()
        with contextlib.suppress(HpctrainError):  # a plan that cannot be read tells no total
            self.plan = KeptPlan.of(run.plan)
        self.losses = Curve()
        self._recent: deque[Row] = deque(maxlen=RECENT)
        self._evaluation: Row = {}
        self._steps: int | None = None
        self._written: Growing | None = None
        self._printed: Growing | None = None

    def look(self) -> bool:
        """Read what is new; whether there was anything."""
        rows = self._new_rows()
        for row in rows:
            self._add(row)
        return bool(rows)

    @property
    def last(self) -> Row:
        """The training row that was written last; empty where there is none."""
        return self._recent[-1] if self._recent else {}

    @property
    def trained(self) -> Trained:
        """How far the training is."""
        if not self._recent:
            return Trained(steps=self.steps)
        last, numbers = self._recent[-1], self.plan.train.numbers
        return Trained(
            step=last["step"],
            steps=self.steps,
            loss=last.get("loss"),
            eval_loss=self._evaluation.get("eval_loss"),
            eval_step=self._evaluation.get("step"),
            tokens_per_s=last.get("tokens_per_s"),
            mfu=last.get("mfu"),
            at=last.get("time") or self._changed_at(),
            seconds_per_row=self._seconds_per_row(),
            seconds_per_step=pace(list(self._recent), numbers.tokens_per_step if numbers else None),
        )

    @property
    def steps(self) -> int | None:
        """How many steps there are in all, as far as the trainer or the plan says so."""
        numbers = self.plan.train.numbers
        planned = numbers.steps if numbers else None
        return self._steps or (planned if _is_sound(planned) else None)

    def _new_rows(self) -> list[Row]:
        if self._written is None and self.run.metrics.is_file():
            self._written = Growing(self.run.metrics)
            self.losses = Curve()  # what was found in the log until now is in the file too
            self._recent.clear()
        if self._written is not None:
            return [row for line in self._written.lines() if (row := metrics.parsed(line)) is not None]
        return self._rows_of_log() if self.plan.train.progress else []

    def _rows_of_log(self) -> list[Row]:
        from hpctrain.run.output.progress import from_log  # most trainers write the file

        path = next((p for p in (self.run.log(TRAIN, 0), self.run.log(TRAIN)) if p.is_file()), None)
        if path is None:
            return []
        if self._printed is None or self._printed.path != path:
            self._printed = Growing(path)
        lines = self._printed.lines()
        rows = from_log("\n".join(lines), self.plan.train.progress) if lines else ()
        return [completed(row, self.plan) for row in rows]

    def _add(self, row: Row) -> None:
        if not (isinstance(row.get("step"), int) and _is_sound(row["step"])):
            return
        if "time" in row and not _is_sound(row["time"]):
            row = {**row, "time": None}
        if row.get("eval_loss") is not None:
            self._evaluation = row
        if "loss" not in row:
            return
        if _is_sound(row.get("steps")):
            self._steps = row["steps"]
        if self._recent and row["step"] <= self._recent[-1]["step"]:
            self._recent.clear()  # another attempt goes on from an earlier checkpoint
            self.losses.cut(row["step"])
        self._recent.append(row)
        if row["loss"] is not None:
            self.losses.add(row["step"], row["loss"])

    def _seconds_per_row(self) -> float | None:
        times = [row["time"] for row in self._recent if isinstance(row.get("time"), (int, float))]
        return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None

    def _changed_at(self) -> float | None:
        reader = self._written or self._printed
        try:
            return reader.path.stat().st_mtime if reader else None
        except OSError:
            return None


def _is_sound(value: object) -> bool:
    """Whether it can be a step or a moment: what a program wrote may be anything."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LARGEST
