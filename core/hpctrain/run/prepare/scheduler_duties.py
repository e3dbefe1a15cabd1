"""What a run file asks of its scheduler and the job does not have: a part of the plan's problems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpctrain.errors import Problem
from hpctrain.hooks.manager import Hooks
from hpctrain.model.duration import Duration
from hpctrain.model.job import JobFiles
from hpctrain.model.plan import Plan
from hpctrain.plan import chain
from hpctrain.render.graph import avoids
from hpctrain.run.prepare.bind import bind

REQUEUES = re.compile(r"^hpc_requeue\(\)", re.MULTILINE)
"""The function with which a job has itself queued again."""
NEXT = f"steps/{chain.TRAIN}/next.sh"
"""The script with which a job hands over another one."""
VET = f"steps/{chain.TRAIN}/vet.sh"
"""The script with which a node measures itself."""


def lacking(plan: Plan, hooks: Hooks, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Mail that nobody sends, nodes that nobody measures, attempts that nobody would begin.

    The scripts tell, so they are rendered; as for another computer, which is the same everywhere.
    """
    job_files = _rendered(plan, hooks, environ)
    if job_files is not None:
        yield from _missing(plan, job_files)


def keeps_away(plan: Plan, hooks: Hooks, environ: Mapping[str, str]) -> bool:
    """Whether the scheduler takes names of nodes that the training's job stays away from."""
    job_files = _rendered(plan, hooks, environ)
    return job_files is not None and avoids(job_files.submit)


def _rendered(plan: Plan, hooks: Hooks, environ: Mapping[str, str]) -> JobFiles | None:
    step = next((planned for planned in plan.steps if planned.step.trains and not planned.here), None)
    if step is None:
        return None
    binding = bind(plan.cluster, plan.run, environ, on_cluster=False)
    job_files: JobFiles = hooks.need("render_job", step=step, plan=plan, binding=binding)
    return job_files


def _missing(plan: Plan, job_files: JobFiles) -> Iterator[Problem]:
    scheduler, cluster = plan.cluster.scheduler, plan.cluster.name
    if plan.run.resources.mail and not job_files.mails:
        yield Problem(
            code="no-mail",
            message=f"the scheduler of {cluster}, {scheduler}, sends no mail",
            where="resources.mail",
            hint="[on.CLUSTER.resources] mail = …      (only where mail is sent)",
        )
    if chain.is_vetted(plan) and VET not in job_files.files:
        yield Problem(
            code="scheduler-ignores",
            message=f"{scheduler} measures no node of {cluster} before the training",
            where="resources.vet",
            hint="vet = false",
            fatal=False,
        )
    links = chain.of(plan)
    if links is None:
        return
    if links.requeue and not any(map(REQUEUES.search, job_files.files.values())):
        yield Problem(
            code="scheduler-ignores",
            message=f"{scheduler} queues no job of {cluster} again: the training would end after one attempt",
            where="resources.requeue",
            hint="requeue = false      (several jobs, each behind the one before)",
        )
    elif links.to_come and links.hands_over and NEXT not in job_files.files:
        fits = Duration(links.links * links.time.seconds)
        yield Problem(
            code="scheduler-ignores",
            message=f"no job of {scheduler} hands over the next one: {links.links} of {links.attempts} "
            f"would train, as many as {cluster} takes of a user at once",
            where="resources.total",
            hint=f'total = "{fits.short}"      (hpctrain continue adds to it)',
        )
