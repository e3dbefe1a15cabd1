"""The site's limits, judged before anything waits in a queue; each refusal shows the row and its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.job import JobState
from hpctrain.model.plan import Plan, PlannedStep, Survey
from hpctrain.model.run import Resources
from hpctrain.plan import queues


def problems(plan: Plan) -> Iterator[Problem]:
    """What the cluster's rows say against the training job."""
    run, cluster = plan.run, plan.cluster
    asked = queues.nodes(run.resources, cluster)
    if cluster.hardware.nodes < asked:
        yield _too_many(cluster, run.resources, asked)
    if run.resources.queue and cluster.queue_named(run.resources.queue) is None:
        yield _unknown(cluster, run.resources.queue)
    for planned in plan.steps:
        if planned.step.trains and not planned.here:
            yield from _job(plan, planned)


def _too_many(cluster: Cluster, resources: Resources, asked: int) -> Problem:
    have = cluster.hardware.nodes
    gpus = resources.gpus
    where = "resources.gpus" if gpus else "resources.nodes"
    if have == 1:
        said = f"{gpus} GPUs" if gpus else str(asked)
        return Problem(
            code="one-node",
            message=f"{cluster.name} is one computer; 1 node is used where {said} were asked for",
            where=where,
            fatal=False,
        )
    return Problem(
        code="node-limit",
        message=f"{f'{gpus} GPUs, ' if gpus else ''}{asked} nodes are more than {cluster.name} has",
        where=where,
        notes=(f"{have} nodes ({_source(cluster, cluster.hardware.source)})",),
        hint=f"gpus = {have * cluster.hardware.gpus_per_node}" if gpus else f"nodes = {have}",
    )


def _unknown(cluster: Cluster, name: str) -> Problem:
    known = [q.name for q in cluster.queue]
    if not known:
        return Problem(
            code="no-queues",
            message=f"{cluster.name} has no queues; {name} means nothing here",
            where="resources.queue",
            fatal=False,
        )
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return Problem(
        code="unknown-queue",
        message=f'{cluster.name} has no queue "{name}"',
        where="resources.queue",
        notes=(f"queues: {' '.join(known)}",),
        hint=f'queue = "{near}"',
    )


def _job(plan: Plan, planned: PlannedStep) -> Iterator[Problem]:
    cluster, resources, launch = plan.cluster, plan.run.resources, planned.step.launch
    row = cluster.queue_named(planned.queue)
    if row is None:
        if cluster.queue and not resources.queue:
            yield _no_row(cluster, launch.nodes)
        return
    if resources.time is None:
        yield Problem(
            code="no-time",
            message=f"{cluster.name} needs to know how long the job may take",
            where="resources.time",
            hint='[resources]\ntime = "1h"',
        )
    elif row.max_time and resources.time > row.max_time:
        yield _too_long(cluster, row, resources, resources.time, launch.nodes)
    yield from _size(cluster, row, planned, resources.time)


def _no_row(cluster: Cluster, nodes: int) -> Problem:
    rows = [q for q in cluster.queue if q.auto] or list(cluster.queue)
    most = max((q.max_nodes or 0 for q in rows), default=0)
    return Problem(
        code="node-limit",
        message=f"no queue of {cluster.name} takes a job of {_nodes(nodes)}",
        where="resources.nodes",
        notes=tuple(said(cluster, q) for q in rows),
        hint=f"nodes = {most}" if 0 < most < nodes else "",
    )


def _too_long(cluster: Cluster, row: Queue, resources: Resources, time: Duration, nodes: int) -> Problem:
    assert row.max_time is not None
    links = -(-time.seconds // row.max_time.seconds)
    others = [q for q in cluster.queue if q is not row and q.max_time and q.max_time >= time]
    who = f"the queue {row.name} of {cluster.name}" if resources.queue else cluster.name
    return _limit(
        cluster,
        row,
        code="time-limit",
        message=f"{time.short} is longer than {who} allows for {_nodes(nodes)}",
        where="resources.time",
        hint=f'time = "{row.max_time.short}"'
        + ("" if "chain" in row.forbids else f"      ({links} jobs of it: hpctrain continue after each)"),
        notes=tuple(said(cluster, q) for q in others[:2]),
    )


def _size(cluster: Cluster, row: Queue, planned: PlannedStep, time: Duration | None) -> Iterator[Problem]:
    launch = planned.step.launch
    gpus = launch.nodes * launch.gpus_per_node
    if not queues.takes(row, launch.nodes):
        yield _limit(
            cluster,
            row,
            code="node-limit",
            message=f"{row.name} does not take a job of {_nodes(launch.nodes)}",
            where="resources.nodes",
            hint=f"nodes = {row.max_nodes if launch.nodes > row.min_nodes else row.min_nodes}",
        )
    most = min((n for n in (row.max_gpus, cluster.policy.max_gpus) if n is not None), default=gpus)
    if gpus > most:
        message = f"{gpus} GPUs are more than {cluster.name} allows in {row.name}"
        yield _limit(
            cluster, row, code="gpu-limit", message=message, where="resources.gpus", hint=f"gpus = {most}"
        )
    if launch.nodes > 1 and "multi_node" in row.forbids:
        message = f"{row.name} is for jobs of one node"
        yield _limit(
            cluster, row, code="queue-forbids", message=message, where="resources.queue", hint="nodes = 1"
        )
    if row.max_node_minutes and time and time.minutes * launch.nodes > row.max_node_minutes:
        fits = Duration(max(60, row.max_node_minutes * 60 // launch.nodes))
        yield _limit(
            cluster,
            row,
            code="node-minutes",
            message=f"{_nodes(launch.nodes)} for {time.short} are more node minutes than {row.name} allows",
            where="resources.time",
            hint=f'time = "{fits.short}"',
        )


def _limit(cluster: Cluster, row: Queue, *, notes: tuple[str, ...] = (), **fields: str) -> Problem:
    """A problem with the row that says so; a row whose source is weak only warns."""
    return Problem(notes=(said(cluster, row), *notes), fatal=row.sure, **fields)  # type: ignore[arg-type]


def crowded(plan: Plan, survey: Survey) -> Iterator[Problem]:
    """What the rows say against one job more of this user, from what is in the queue now."""
    live = [job for job in survey.jobs if not job.state.over]
    for name in dict.fromkeys(s.queue for s in plan.steps if not s.here and not survey.made.get(s.name)):
        row = plan.cluster.queue_named(name)
        if row is None or row.jobs_per_user is None:
            continue
        words = set(row.ask.get(plan.cluster.scheduler, ()))
        there = [job for job in live if words <= set(job.asked)]
        new = sum(s.queue == name and not survey.made.get(s.name) for s in plan.steps)
        if len(there) + new > row.jobs_per_user:
            held = f"you have {len(there)} there, and the run adds {new}"
            yield _limit(
                plan.cluster,
                row,
                code="jobs-per-user",
                message=f"{name} takes {row.jobs_per_user} jobs of a user at a time; {held}",
                where="resources.queue",
                hint="hpctrain runs      (then wait, or hpctrain cancel RUN)",
            )


def capped(plan: Plan, survey: Survey) -> Iterator[Problem]:
    """What the site's cap over a project says, from what all its users run and wait for now."""
    policy, launches = (
        plan.cluster.policy,
        [s.step.launch for s in plan.steps if s.step.trains and not s.here],
    )
    live = [job for job in survey.project if not job.state.over]
    each = plan.cluster.hardware.gpus_per_node
    if policy.max_gpus is not None:
        held = sum(job.node_count * each if job.gpus is None else job.gpus for job in live)
        new = sum(launch.nodes * launch.gpus_per_node for launch in launches)
        if new and held + new > policy.max_gpus:
            message, more = _over(plan, live, "GPUs", policy.max_gpus, held, new)
            yield Problem(code="gpu-limit", message=message, where="resources.gpus", **more)
    if policy.max_nodes is not None:
        held, new = sum(job.node_count for job in live), sum(launch.nodes for launch in launches)
        if new and held + new > policy.max_nodes:
            message, more = _over(plan, live, "nodes", policy.max_nodes, held, new)
            yield Problem(code="node-limit", message=message, where="resources.nodes", **more)


def _over(
    plan: Plan, jobs: Iterable[JobState], what: str, cap: int, held: int, new: int
) -> tuple[str, dict[str, Any]]:
    """The words of a cap that is exceeded: the message, whose jobs they are, what still fits."""
    cluster = plan.cluster
    now = f"{held} are held or queued, and the run adds {new}"
    message = f"a project may hold {cap} {what} on {cluster.name}: {now}"
    users = [job.user or "you" for job in jobs]
    whose = ", ".join(f"{user} ({users.count(user)})" for user in sorted(set(users)))
    said = f"jobs of {whose} " if users else ""
    fits = f"{what.lower()} = {cap - held}" if cap > held else "hpctrain runs      (then wait, or cancel one)"
    return message, {"notes": (f"{said}({_source(cluster, cluster.policy.source)})",), "hint": fits}


def said(cluster: Cluster, row: Queue) -> str:
    """`batch, 1-91 nodes: 2h (OLCF Frontier User Guide, checked 2026-07-22)`."""
    most = row.max_nodes
    nodes = f"{row.min_nodes}-{most} nodes" if most and most > 1 else _nodes(row.min_nodes)
    limits = [
        row.max_time.short if row.max_time else "any time",
        *([f"{row.max_gpus} GPUs"] if row.max_gpus else []),
        *([f"{row.max_node_minutes} node minutes"] if row.max_node_minutes else []),
        *(f"no {word}" for word in row.forbids),
    ]
    open_end = " or more" if most is None else ""
    return f"{row.name}, {nodes}{open_end}: {', '.join(limits)} ({_source(cluster, row.source)})"


def _source(cluster: Cluster, ident: str) -> str:
    found = cluster.source_of(ident)
    return f"{found.title}, checked {found.checked}" if found else ident


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
