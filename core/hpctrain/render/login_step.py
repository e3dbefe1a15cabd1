"""A step that runs where hpctrain was started: the same scripts, no scheduler."""

from __future__ import annotations

from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.render.scripts import Shape, step_files

SHAPE = Shape(
    job=("export HPC_JOB=here-$$ HPC_NODES=1 HPC_HEAD=127.0.0.1 HPC_GPUS=0 HPC_ATTEMPT=0",),
    rank=("export HPC_RANK=0 HPC_LOCAL_RANK=0 HPC_NODE_RANK=0 HPC_WORLD=1",),
)


def here_files(planned: PlannedStep, plan: Plan, binding: Binding) -> dict[str, str]:
    """The files of a step that runs here."""
    return step_files(planned, plan, binding, SHAPE)
