"""The site's limits, judged before anything waits in a queue; each refusal shows the row and its source."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.model.run import Resources
from hpctrain.model.step import Launch
from hpctrain.plan import queues


def problems(plan: Plan) -> Iterator[Problem]:
    """What the cluster's rows say against the training job."""
    run, cluster = plan.run, plan.cluster
    nodes = queues.nodes(run.resources, cluster) + (run.resources.spare_nodes or 0)
    if cluster.hardware.nodes < nodes:
        yield _too_many(cluster, run.resources, nodes)
    if run.resources.queue and cluster.queue_named(run.resources.queue) is None:
        yield _unknown(cluster, run.resources.queue)
    for planned in plan.steps:
        if planned.step.trains and not planned.here:
            yield from _job(plan, planned)


def _too_many(cluster: Cluster, resources: Resources, nodes: int) -> Problem:
    have = cluster.hardware.nodes
    gpus = resources.gpus
    where = "resources.gpus" if gpus else "resources.nodes"
    if have == 1:
        amount = f"{gpus} GPUs" if gpus else str(nodes)
        return Problem(
            code="one-node",
            message=f"{cluster.name} is one computer; 1 node is used where {amount} were asked for",
            where=where,
            fatal=False,
        )
    return Problem(
        code="node-limit",
        message=f"{f'{gpus} GPUs, ' if gpus else ''}{nodes} nodes exceed what {cluster.name} has",
        where=where,
        notes=(f"{have} nodes ({source_text(cluster, cluster.hardware.source)})",),
        hint=f"gpus = {have * cluster.hardware.gpus_per_node}" if gpus else f"nodes = {have}",
    )


def _unknown(cluster: Cluster, name: str) -> Problem:
    queue_names = [q.name for q in cluster.queue]
    if not queue_names:
        return Problem(
            code="no-queues",
            message=f"{cluster.name} has no queues; {name} has no effect here",
            where="resources.queue",
            fatal=False,
        )
    from difflib import get_close_matches

    near = get_close_matches(name, queue_names, n=1, cutoff=0.0)[0]
    return Problem(
        code="unknown-queue",
        message=f'{cluster.name} has no queue "{name}"',
        where="resources.queue",
        notes=(f"queues: {' '.join(queue_names)}",),
        hint=f'queue = "{near}"',
    )


def _job(plan: Plan, planned: PlannedStep) -> Iterator[Problem]:
    cluster, resources, launch = plan.cluster, plan.run.resources, planned.step.launch
    row = cluster.queue_named(planned.queue)
    if row is None:
        if cluster.queue and not resources.queue:
            yield _no_row(cluster, launch)
        return
    if resources.time is None:
        yield Problem(
            code="no-time",
            message=f"{cluster.name} needs a time limit for the job",
            where="resources.time",
            hint='[resources]\ntime = "1h"',
        )
    elif row.max_time and resources.time > row.max_time:
        yield _too_long(cluster, row, resources, resources.time, launch.job_nodes)
    elif row.min_time and resources.time < row.min_time:
        yield limit(
            cluster,
            row,
            code="time-limit",
            message=f"{resources.time.short} is shorter than {row.name} of {cluster.name} takes",
            where="resources.time",
            hint=f'time = "{row.min_time.short}"',
        )
    yield from _size(cluster, row, planned, resources.time)


def _no_row(cluster: Cluster, launch: Launch) -> Problem:
    nodes = launch.job_nodes
    rows = [q for q in cluster.queue if q.auto] or list(cluster.queue)
    most = max((q.max_nodes or 0 for q in rows), default=0)
    training = max(1, most - (launch.spare_nodes or 0))
    return Problem(
        code="node-limit",
        message=f"no queue of {cluster.name} takes a job of {_nodes(nodes)}",
        where="resources.nodes",
        notes=tuple(queue_text(cluster, q) for q in rows),
        hint=f"nodes = {training}{_and_spare(launch)}" if 0 < most < nodes else "",
    )


def _too_long(cluster: Cluster, row: Queue, resources: Resources, time: Duration, nodes: int) -> Problem:
    assert row.max_time is not None
    links = -(-time.seconds // row.max_time.seconds)
    longer_queues = [q for q in cluster.queue if q is not row and q.max_time and q.max_time >= time]
    who = f"the queue {row.name} of {cluster.name}" if resources.queue else cluster.name
    return limit(
        cluster,
        row,
        code="time-limit",
        message=f"{time.short} is longer than {who} allows for {_nodes(nodes)}",
        where="resources.time",
        hint=f'time = "{row.max_time.short}"'
        + ("" if "chain" in row.forbids else f'      (and total = "{time.short}": {links} jobs of it)'),
        notes=tuple(queue_text(cluster, q) for q in longer_queues[:2]),
    )


def _and_spare(launch: Launch) -> str:
    return f"      (beside spare_nodes = {launch.spare_nodes})" if launch.spare_nodes else ""


def _most(row: Queue, launch: Launch) -> int | None:
    return row.max_nodes and max(1, row.max_nodes - (launch.spare_nodes or 0))


def _size(cluster: Cluster, row: Queue, planned: PlannedStep, time: Duration | None) -> Iterator[Problem]:
    launch = planned.step.launch
    gpus = launch.job_nodes * launch.gpus_per_node
    if not queues.takes(row, launch.job_nodes):
        yield limit(
            cluster,
            row,
            code="node-limit",
            message=f"{row.name} does not take a job of {_nodes(launch.job_nodes)}",
            where="resources.nodes",
            hint=f"nodes = {_most(row, launch) if launch.job_nodes > row.min_nodes else row.min_nodes}",
        )
    most = min((n for n in (row.max_gpus, cluster.policy.max_gpus) if n is not None), default=gpus)
    if gpus > most:
        message = f"{gpus} GPUs are more than {cluster.name} allows in {row.name}"
        training = most - (launch.spare_nodes or 0) * launch.gpus_per_node
        hint = f"gpus = {training}{_and_spare(launch)}" if training > 0 else "remove spare_nodes"
        yield limit(cluster, row, code="gpu-limit", message=message, where="resources.gpus", hint=hint)
    if "batch" in row.forbids:
        message = f"{row.name} takes no submitted jobs: its nodes are held by hand"
        yield limit(
            cluster,
            row,
            code="queue-forbids",
            message=message,
            where="resources.queue",
            hint="hpctrain run --here      (inside nodes of it that you hold)",
        )
    if launch.job_nodes > 1 and "multi_node" in row.forbids:
        message = f"{row.name} is for jobs of one node"
        yield limit(
            cluster, row, code="queue-forbids", message=message, where="resources.queue", hint="nodes = 1"
        )
    if row.max_node_minutes and time and time.minutes * launch.job_nodes > row.max_node_minutes:
        fits = Duration(max(60, row.max_node_minutes * 60 // launch.job_nodes))
        yield limit(
            cluster,
            row,
            code="node-minutes",
            message=f"{_nodes(launch.job_nodes)} for {time.short} are more node minutes than "
            f"{row.name} allows",
            where="resources.time",
            hint=f'time = "{fits.short}"',
        )


def limit(cluster: Cluster, row: Queue, *, notes: tuple[str, ...] = (), **fields: str) -> Problem:
    """A problem with the row that says so; a row whose source is weak only warns."""
    return Problem(notes=(queue_text(cluster, row), *notes), fatal=row.sure, **fields)  # type: ignore[arg-type]


def uncounted(cluster: Cluster, *answered: str) -> Iterator[Problem]:
    """A warning for each row with a limit on jobs whose words the scheduler does not answer of a job.

    `answered` are the beginnings of the words that it does answer: "--qos=", "-q ".
    """
    for row in cluster.queue:
        words = row.counts or row.ask.get(cluster.scheduler, ())
        is_limited = row.jobs_per_user is not None or row.jobs_per_project is not None
        if is_limited and words and not any(word.startswith(answered) for word in words):
            yield Problem(
                code="uncounted-limit",
                message=f"the jobs of queue {row.name} cannot be counted: "
                f"none of {' '.join(words)} is a word that {cluster.scheduler} answers of a job",
                where=f"queue.{row.name}.counts",
                hint=f'counts = ["{answered[-1]}{row.name}"]      (what the scheduler shows of its jobs)',
                fatal=False,
            )


def queue_text(cluster: Cluster, row: Queue) -> str:
    """`batch, 1-91 nodes: 2h (OLCF Frontier User Guide, checked 2026-07-22)`."""
    most = row.max_nodes
    nodes = f"{row.min_nodes}-{most} nodes" if most and most > 1 else _nodes(row.min_nodes)
    limits = [
        row.max_time.short if row.max_time else "any time",
        *([f"at least {row.min_time.short}"] if row.min_time else []),
        *([f"{row.max_gpus} GPUs"] if row.max_gpus else []),
        *([f"{row.max_node_minutes} node minutes"] if row.max_node_minutes else []),
        *(f"no {word}" for word in row.forbids),
    ]
    open_end = " or more" if most is None else ""
    return f"{row.name}, {nodes}{open_end}: {', '.join(limits)} ({source_text(cluster, row.source)})"


def source_text(cluster: Cluster, ident: str) -> str:
    """The page that says so, with the day on which it was read."""
    source = cluster.source_of(ident)
    return f"{source.title}, checked {source.checked}" if source else ident


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
