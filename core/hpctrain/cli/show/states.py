"""How states look, and why a step is in its state."""

from __future__ import annotations

from hpctrain.model.job import State
from hpctrain.run.steps.status import StepState
from hpctrain_job.exit_codes import SAVED

STYLES = {State.DONE: "ok", State.FAILED: "error", State.CANCELLED: "warn", State.UNKNOWN: "warn"}


def reason_of(step: StepState) -> str:
    """Why a step is in its state; a job that was cancelled saved for that reason, not for its time limit."""
    if step.state is State.CANCELLED and step.exit_code == SAVED:
        return "it was cancelled; it saved before it ended"
    return step.reason
