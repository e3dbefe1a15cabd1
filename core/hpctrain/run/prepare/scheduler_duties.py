"""What a run file asks of its scheduler and the job does not have: refused before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpctrain.errors import Problem
from hpctrain.model.duration import Duration
from hpctrain.model.job import JobFiles
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.plan import chain

REQUEUES = re.compile(r"^hpc_requeue\(\)", re.MULTILINE)
"""The function with which a job has itself queued again."""
NEXT = f"steps/{chain.TRAIN}/next.sh"
"""The script with which a job hands over another one."""


def lacking(step: PlannedStep, plan: Plan, job_files: JobFiles) -> Iterator[Problem]:
    """Mail that nobody sends, and attempts of a long training that nobody would begin."""
    if not step.step.trains:
        return
    scheduler, cluster = plan.cluster.scheduler, plan.cluster.name
    if plan.run.resources.mail and not job_files.mails:
        yield Problem(
            code="no-mail",
            message=f"the scheduler of {cluster}, {scheduler}, sends no mail",
            where="resources.mail",
            hint="[on.CLUSTER.resources] mail = …      (only where mail is sent)",
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
