"""The scripts with which the nodes of a training are measured before it: alone, then in pairs."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from hpctrain.model.layer import EnvVar, Scope
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.words import Secret, Word
from hpctrain.plan import chain
from hpctrain.render import shell

BY_ITSELF, OUTSIDE, INSIDE = "vet.sh", "sweep.sh", "sweep_task.sh"


@frozen(kw_only=True)
class Vetting:
    """How a scheduler starts one process on each of HPC_FIT nodes: those of the job without HPC_UNFIT,
    whether they get ranks or not. Both variables are job.sh's."""

    start: tuple[Word, ...]
    """Words in front of `bash vet.sh`, where each node measures itself."""
    start_inside: tuple[Word, ...]
    """The same with all cores and GPUs of a node, in front of `bash sweep.sh`, where they measure pairs."""

    def lines(self, planned: PlannedStep, binding: Binding) -> tuple[str, ...]:
        """Of job.sh, behind the modules and in front of the ranks."""
        folder, needed = f"steps/{planned.name}", planned.step.launch.nodes
        starter, starter_inside = shell.words(self.start, binding), shell.words(self.start_inside, binding)
        return (
            "hpc_vetting",
            f"hpc_vet {needed} {starter} bash {folder}/{BY_ITSELF}",
            f"hpc_sweep {needed} {starter_inside} bash {folder}/{OUTSIDE}",
            "hpc_vetted",
        )

    def scripts(
        self, planned: PlannedStep, plan: Plan, binding: Binding, rank: Iterable[str], job_zip: str
    ) -> dict[str, str]:
        """Path -> text; whatever happens in them, the judge decides. `rank` are the lines of rank.sh that say
        where it is."""
        folder = f"steps/{planned.name}"
        kind = plan.cluster.hardware.gpu_kind if planned.step.launch.gpus_per_node else ""
        wrap = shell.words(planned.around.wrap, binding)
        head = ("#!/bin/bash", "set -uo pipefail", 'cd "$HPC_RUN" || exit 0')
        texts = {
            BY_ITSELF: (
                *head,
                *rank,
                f'export PYTHONPATH="{job_zip}"',
                f'timeout 45 "$HPC_PYTHON" -m hpctrain_job.vet.node {folder}/vet {shell.quoted(kind)}',
                "exit 0",
            ),
            OUTSIDE: (
                *head,
                *rank,
                *_variables(planned.around.env, Scope.NODE, binding),
                f"{wrap} bash {folder}/{INSIDE}".lstrip(),
                "exit 0",
            ),
            INSIDE: (
                *head,
                *_variables(planned.around.env, Scope.TASK, binding),
                f'export PYTHONPATH="{job_zip}${{PYTHONPATH:+:$PYTHONPATH}}"',
                *(shell.line(value, binding) for value in planned.around.task),
                "python=$(command -v python || command -v python3)",
                f'exec timeout 55 "$python" -m hpctrain_job.vet.sweep {folder}/vet',
            ),
        }
        return {f"{folder}/{name}": shell.script(lines) for name, lines in texts.items()}


def is_wanted(planned: PlannedStep, plan: Plan) -> bool:
    """Whether the nodes are measured before the training, which takes them one process on each."""
    nodes, choice = planned.step.launch.nodes, plan.run.resources.vet
    is_asked = nodes >= plan.cluster.launch.vet_nodes if choice is None else choice
    return planned.name == chain.TRAIN and nodes > 1 and is_asked


def _variables(env: Iterable[EnvVar], at: Scope, binding: Binding) -> list[str]:
    """Without tokens: nothing is trained here."""
    return [shell.variable(var, binding) for var in env if var.at is at and not isinstance(var.value, Secret)]
