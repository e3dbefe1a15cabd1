"""What speaks against a training of several jobs: a queue that forbids it, a trainer that starts anew."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hpctrain.defaults.limits import limit, queue_text
from hpctrain.errors import Problem
from hpctrain.model.duration import Duration
from hpctrain.model.plan import Plan
from hpctrain.plan import chain, queues


def problems(plan: Plan) -> Iterator[Problem]:
    """The problems of `[resources] total` and of spare nodes."""
    resources, step, links = plan.run.resources, plan.step_named(chain.TRAIN), chain.of(plan)
    if resources.total and resources.time and resources.total < resources.time:
        yield Problem(
            code="short-total",
            message=f"the whole of {resources.total.short} is shorter than one job of {resources.time.short}",
            where="resources.total",
            hint=f'time = "{resources.total.short}"      (and no total)',
        )
    if plan.train is None or step is None or links is None:
        return
    row = plan.cluster.queue_named(step.queue)
    if row is not None and "chain" in row.forbids and resources.is_chain:
        yield limit(
            plan.cluster,
            row,
            code="queue-forbids",
            message=f"{row.name} of {plan.cluster.name} forbids jobs that follow each other, "
            f"and total takes {links.attempts}",
            where="resources.total",
            hint=f'time = "{links.time.short}"      (and no total), or another queue',
        )
    if row is not None and "submit" in row.forbids and links.to_come and not links.requeue:
        fits = Duration(links.links * links.time.seconds)
        yield limit(
            plan.cluster,
            row,
            code="queue-forbids",
            message=f"{row.name} of {plan.cluster.name} forbids a job to submit another, takes "
            f"{links.links} of a user, and total takes {links.attempts}",
            where="resources.total",
            hint=f'total = "{fits.short}"      (hpctrain continue adds to it), or another queue',
        )
    if links.attempts > 1 and resources.is_chain:
        yield from _longer_jobs(plan, links)
    if plan.run.checkpoint.resume == "never":
        yield Problem(
            code="chain-anew",
            message=f'resume = "never" starts {_attempts(links)} anew',
            where="checkpoint.resume",
            hint='resume = "auto"',
        )
    elif plan.train.checkpoints is None:
        yield Problem(
            code="chain-anew",
            message=f"no checkpoint of the trainer {plan.run.train.use} is known: it starts "
            f"{_attempts(links)} anew, unless the program goes on by itself",
            where="resources.total" if resources.is_chain else "resources.spare_nodes",
            fatal=False,
        )


def _attempts(links: chain.Chain) -> str:
    if links.attempts > 1:
        return f"each of the {links.attempts} {links.unit} of total"
    return "a training that goes on with a spare node"


def _longer_jobs(plan: Plan, links: chain.Chain) -> Iterator[Problem]:
    """Another queue in which the same training takes fewer jobs; which of them starts sooner nobody knows."""
    resources, used = plan.run.resources, plan.step_named(chain.TRAIN)
    if resources.queue or used is None:
        return
    count = queues.nodes(resources, plan.cluster)
    refusing = {"batch", "chain", "production"}
    longer = [
        (row.auto, row.max_time, row)
        for row in plan.cluster.queue
        if row.max_time
        and row.max_time > links.time
        and queues.takes(row, count)
        and not refusing & set(row.forbids)
    ]
    if not longer:
        return
    # One that everybody may use, rather than one that a project must be given.
    _, longest, row = max(longer, key=lambda entry: entry[:2])
    time = min(longest, links.total)
    jobs = math.ceil(links.total.seconds / time.seconds)
    several = f"{jobs} {links.unit}" if jobs > 1 else "1 job"
    yield Problem(
        code="longer-jobs",
        message=f"total takes {links.attempts} {links.unit} of {links.time.short} in {used.queue}, "
        f"and {several} of {time.short} in {row.name}",
        where="resources.total",
        hint=f'queue = "{row.name}"      (it is taken by name only)'
        if not row.auto
        else f'time = "{time.short}"',
        notes=(queue_text(plan.cluster, row), *((row.note,) if row.note else ())),
        fatal=False,
    )
