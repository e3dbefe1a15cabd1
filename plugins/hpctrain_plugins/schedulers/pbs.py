"""PBS Professional and OpenPBS, 19 and later, with or without job history.

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
    RunSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1

SYNONYMS = {"qsub": "submit", "qdel": "cancel", "qstat": "runs"}
"""Programs of the scheduler -> the command that does the same of a run here."""


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> list[Problem]:
    """Words for qsub that would undo hpctrain's own, and facts that PBS has no word for or cannot count."""
    from hpctrain.toolbox import uncounted_limits
    from hpctrain_plugins.schedulers import pbs_checks

    return [
        *pbs_checks.words(run),
        *pbs_checks.requeue(run),
        *pbs_checks.spares(run),
        *pbs_checks.facts(plan),
        *uncounted_limits(cluster, "-q "),
    ]


@hookimpl
def render_job(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    """job.sh with its directives, and the call that submits it."""
    from hpctrain_plugins.schedulers.pbs_render import job_files

    return job_files(step, plan, binding)


@hookimpl
def submit_job(job: Job, tools: ProgramRunner) -> str:
    """Call qsub once; the tag is already in `job.argv`."""
    from hpctrain_plugins.schedulers.pbs_submit import submitted

    return submitted(job, tools)


@hookimpl
def query_jobs(
    ids: tuple[str, ...], tags: tuple[str, ...], account: str, project: bool, tools: ProgramRunner
) -> list[JobState]:
    """One qstat of these jobs; qselect says which they are when only a tag is known."""
    from hpctrain_plugins.schedulers import pbs_query

    return pbs_query.of_project(account, tools) if project else pbs_query.states(ids, tags, tools)


@hookimpl
def cancel_jobs(ids: tuple[str, ...], tools: ProgramRunner) -> bool:
    """Cancel; jobs that are over are no error."""
    from hpctrain_plugins.schedulers.pbs_query import cancelled

    return cancelled(ids, tools)


@hookimpl
def allocation(environ: Mapping[str, str], tools: ProgramRunner) -> Allocation | None:
    """The job of this shell: of qsub -I, or of a batch script."""
    from hpctrain_plugins.schedulers.pbs_inside import current_allocation

    return current_allocation(environ, tools)


def fact_questions(_cluster: Cluster, _user: str) -> Mapping[str, tuple[str, ...]]:
    """What a login node is asked of the cluster's facts: programs by the names that `live_facts` reads."""
    return {"queues": ("qstat", "-Q", "-f", "-F", "json")}


def live_facts(outputs: Mapping[str, str]) -> list[Reading]:
    """The facts in what those programs printed."""
    from hpctrain_plugins.schedulers.pbs_live import readings

    return list(readings(outputs))


def starts_job(command: str) -> bool:
    """Whether a line of shell asks for nodes."""
    from hpctrain_plugins.schedulers.pbs_live import starts_job

    return starts_job(command)
