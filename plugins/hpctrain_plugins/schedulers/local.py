"""Jobs on this machine: the same scripts as on a cluster, as processes that outlive their caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.plugin import Allocation, Binding, Job, JobFiles, JobState, Plan, PlannedStep, Problem, hookimpl
from hpctrain_plugins.schedulers import local_render

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1


@hookimpl
def check_run(plan: Plan) -> list[Problem]:
    """What is said to a scheduler, and means nothing to processes of one computer."""
    from hpctrain_plugins.schedulers.local_checks import problems

    return list(problems(plan))


@hookimpl
def render_job(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    """job.sh, the runner, and the command that starts it."""
    return local_render.job_files(step, plan, binding)


@hookimpl
def submit_job(job: Job, tools: ProgramRunner) -> str:
    """Start the detached runner; a tag that runs already gives its id and no second job."""
    from hpctrain_plugins.schedulers.local_jobs import submitted

    return submitted(job, tools)


@hookimpl
def query_jobs(ids: tuple[str, ...], tags: tuple[str, ...]) -> list[JobState]:
    """Read the state folder and look at the processes."""
    from hpctrain_plugins.schedulers.local_jobs import find

    return [job.state for job in find(ids, tags)]


@hookimpl
def cancel_jobs(ids: tuple[str, ...]) -> bool:
    """End the process group of each job that still runs."""
    from hpctrain_plugins.schedulers.local_jobs import cancel, find

    for job in find(ids, ()):
        cancel(job)
    return True


@hookimpl
def allocation() -> Allocation:
    """An allocation of this computer, which needs no scheduler."""
    return Allocation(job="here")


def starts_job(_command: str) -> bool:
    """No command asks for nodes here."""
    return False
