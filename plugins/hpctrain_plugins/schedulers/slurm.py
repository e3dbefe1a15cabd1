"""Slurm, 22.05 and later, with or without accounting.

Each hook imports what it needs when it is called: planning pays for none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hpctrain.plugin import (
    Allocation,
    Binding,
    Cluster,
    Job,
    JobFiles,
    JobState,
    Plan,
    PlannedStep,
    Problem,
    Reading,
    hookimpl,
)

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1

SYNONYMS = {
    "sbatch": "submit",
    "srun": "exec",
    "salloc": "shell",
    "scancel": "cancel",
    "squeue": "runs",
    "sacct": "runs",
}
"""Programs of the scheduler -> the command that does the same of a run here."""

NAME = "slurm"


@hookimpl
def check_run(plan: Plan) -> list[Problem]:
    """Words for sbatch that would take the place of hpctrain's own, limits that cannot be counted, and spare
    nodes where guards cannot start the ranks."""
    from hpctrain.toolbox import uncounted_limits

    run, problems = plan.run, list(uncounted_limits(plan.cluster, "--partition=", "--qos="))
    if NAME in run.resources.ask:
        from hpctrain_plugins.schedulers import slurm_checks

        problems += slurm_checks.problems(run)
    if run.resources.spare_nodes:
        from hpctrain_plugins.schedulers import slurm_checks

        problems += slurm_checks.unguarded(plan)
    return problems


@hookimpl
def render_job(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    """job.sh with its directives, and the sbatch call."""
    from hpctrain_plugins.schedulers.slurm_render import job_files

    return job_files(step, plan, binding)


@hookimpl
def submit_job(job: Job, tools: ProgramRunner) -> str:
    """Call sbatch once; the tag is already in `job.argv`."""
    from hpctrain_plugins.schedulers.slurm_submit import submitted

    return submitted(job, tools)


@hookimpl
def query_jobs(
    ids: tuple[str, ...], tags: tuple[str, ...], account: str, project: bool, tools: ProgramRunner
) -> list[JobState]:
    """One squeue, then sacct for what is missing; or one squeue of the account."""
    from hpctrain_plugins.schedulers import slurm_project, slurm_query

    return slurm_project.jobs(account, tools) if project else slurm_query.states(ids, tags, tools)


@hookimpl
def cancel_jobs(ids: tuple[str, ...], tools: ProgramRunner) -> bool:
    """Cancel; jobs that are over are no error."""
    from hpctrain_plugins.schedulers.slurm_query import cancelled

    return cancelled(ids, tools)


@hookimpl
def allocation(environ: Mapping[str, str], tools: ProgramRunner) -> Allocation | None:
    """The job of this shell: of salloc, of srun --pty, or of a batch script."""
    from hpctrain_plugins.schedulers.slurm_query import current_allocation

    return current_allocation(environ, tools)


def printed_facts(outputs: Mapping[str, str]) -> list[Reading]:
    """A new cluster's facts, from what sinfo and scontrol printed: texts by the names of their files."""
    from hpctrain_plugins.schedulers.slurm_facts import printed

    return list(printed(outputs))


def fact_questions(cluster: Cluster, user: str) -> Mapping[str, tuple[str, ...]]:
    """What a login node is asked of the cluster's facts: programs by the names that `live_facts` reads."""
    from hpctrain_plugins.schedulers.slurm_live import questions

    return questions(cluster, user)


def live_facts(outputs: Mapping[str, str]) -> list[Reading]:
    """The facts in what those programs printed."""
    from hpctrain_plugins.schedulers.slurm_live import readings

    return list(readings(outputs))


def starts_job(command: str) -> bool:
    """Whether a line of shell asks for nodes."""
    from hpctrain_plugins.schedulers.slurm_live import starts_job

    return starts_job(command)
