"""What is queued already, against the site's limits of how many: of a user, of a project, and its caps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hpctrain.defaults.limits import limit, source_text
from hpctrain.errors import Problem
from hpctrain.model.cluster import Queue
from hpctrain.model.job import JobState
from hpctrain.model.plan import Plan, Survey


def crowded(plan: Plan, survey: Survey) -> Iterator[Problem]:
    """What the rows say against the run's jobs, from what is in the queue now."""
    submitted = [s for s in plan.steps if not s.here and not survey.artifact_exists.get(s.name)]
    for name in dict.fromkeys(step.queue for step in submitted):
        row = plan.cluster.queue_named(name)
        if row is None:
            continue
        new = sum(step.queue == name for step in submitted)
        of_user, of_project = (_count(row, plan, jobs) for jobs in (survey.jobs, survey.project))
        if row.jobs_per_user is not None and of_user + new > row.jobs_per_user:
            holds = f"{name} holds at most {row.jobs_per_user} of a user's jobs at a time"
            yield _full(plan, row, f"{holds}; you have {of_user} there", new, code="jobs-per-user")
        if row.jobs_per_project is not None and of_project + new > row.jobs_per_project:
            holds = f"{name} holds at most {row.jobs_per_project} of a project's jobs at a time"
            yield _full(
                plan, row, f"{holds}; its users have {of_project} there", new, code="jobs-per-project"
            )


def _full(plan: Plan, row: Queue, used: str, new: int, *, code: str) -> Problem:
    return limit(
        plan.cluster,
        row,
        code=code,
        message=f"{used}, and the run adds {new}",
        where="resources.queue",
        hint="hpctrain runs      (then wait, or hpctrain cancel RUN)",
    )


def _count(row: Queue, plan: Plan, jobs: Iterable[JobState]) -> int:
    """How many of these jobs are in the queue of this row."""
    words = row.counts or row.ask.get(plan.cluster.scheduler, ())
    # A row without words is the default queue, and any job may be in it.
    return sum(not job.state.over and (not words or _is_in(words, job.queue_options)) for job in jobs)


def _is_in(words: Iterable[str], answered: Iterable[str]) -> bool:
    """Whether a job with these answered words is in the queue that `words` ask for.

    Words of options that the scheduler does not answer (`--constraint=gpu`) say nothing of it.
    """
    options = {_option(word) for word in answered}
    comparable = {word for word in words if _option(word) in options}
    return bool(comparable) and comparable <= set(answered)


def _option(word: str) -> str:
    """`--qos=debug` and `-q debug` are about the options --qos and -q."""
    return re.split(r"[= ]", word, maxsplit=1)[0]


def capped(plan: Plan, survey: Survey) -> Iterator[Problem]:
    """What the site's cap over a project says, from what all its users run and wait for now."""
    policy = plan.cluster.policy
    launches = [s.step.launch for s in plan.steps if s.step.trains and not s.here]
    live = [job for job in survey.project if not job.state.over]
    gpus_per_node = plan.cluster.hardware.gpus_per_node
    if policy.max_gpus is not None:
        in_use = sum(job.node_count * gpus_per_node if job.gpus is None else job.gpus for job in live)
        new = sum(launch.job_nodes * launch.gpus_per_node for launch in launches)
        if new and in_use + new > policy.max_gpus:
            message, details = _over(plan, live, "GPUs", policy.max_gpus, in_use, new)
            yield Problem(code="gpu-limit", message=message, where="resources.gpus", **details)
    if policy.max_nodes is not None:
        in_use, new = sum(job.node_count for job in live), sum(launch.job_nodes for launch in launches)
        if new and in_use + new > policy.max_nodes:
            message, details = _over(plan, live, "nodes", policy.max_nodes, in_use, new)
            yield Problem(code="node-limit", message=message, where="resources.nodes", **details)


def _over(
    plan: Plan, jobs: Iterable[JobState], unit: str, cap: int, in_use: int, new: int
) -> tuple[str, dict[str, Any]]:
    """The words of a cap that is exceeded: the message, whose jobs they are, what still fits."""
    cluster = plan.cluster
    now = f"{in_use} are held or queued, and the run adds {new}"
    message = f"a project may hold {cap} {unit} on {cluster.name}: {now}"
    users = [job.user or "you" for job in jobs]
    whose = ", ".join(f"{user} ({users.count(user)})" for user in sorted(set(users)))
    owner_note = f"jobs of {whose} " if users else ""
    fits = (
        f"{unit.lower()} = {cap - in_use}"
        if cap > in_use
        else "hpctrain runs      (then wait, or cancel one)"
    )
    return message, {"notes": (f"{owner_note}({source_text(cluster, cluster.policy.source)})",), "hint": fits}
