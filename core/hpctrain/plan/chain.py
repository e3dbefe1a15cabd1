"""A training of several jobs: how many, of how long, and how many of them may be in the queue at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
from attrs import frozen

from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.model.run import RunSpec
from hpctrain.model.words import Join, Loc, Word
from hpctrain.plan import queues

TRAIN = "train"
SHARED = ("checkpoints", "data", "assets", "env", "images")
"""Roles in which the project may write, where the site shares them; the first takes the stop file."""
AVOID_SHARE = 20
"""One node of so many may be avoided at most, two in any case, and never one that the job would need."""


@frozen(kw_only=True)
class Chain:
    """The jobs of one training."""

    attempts: int
    """As many as `total` needs."""
    time: Duration
    """The limit of each."""
    total: Duration
    """What the run file asks for."""
    links: int
    """The most that are in the queue at once: the attempts and a spare, or what the site takes of a user."""
    avoid: int
    """How many nodes that failed may be left out."""
    requeue: bool
    """Whether one job does all of them, queued again under its id."""
    hands_over: bool
    """Whether its jobs may submit further ones; the running one takes a place of the queue, too."""

    @property
    def to_come(self) -> int:
        """How many attempts are handed over when those before them have begun."""
        return max(0, self.attempts - self.links)

    @property
    def unit(self) -> str:
        """What there are several of: one job that is queued again is many attempts."""
        return "attempts" if self.requeue else "jobs"


def of(plan: Plan) -> Chain | None:
    """The chain of a plan; None where one job that begins once is all that the run asks for. With spare nodes
    one job may begin to train several times."""
    resources, step = plan.run.resources, plan.step_named(TRAIN)
    if plan.train is None or step is None or step.here or resources.time is None:
        return None
    if not resources.is_chain and not step.step.launch.spare_nodes:
        return None
    time, total = resources.time, resources.total or resources.time
    attempts = math.ceil(total.seconds / time.seconds)
    nodes = step.step.launch.job_nodes
    requeue = bool(resources.requeue) and resources.is_chain
    links = 1 if requeue or not resources.is_chain else min((attempts + 1, *_room(plan, step)))
    row = plan.cluster.queue_named(step.queue)
    return Chain(
        attempts=attempts,
        time=time,
        total=total,
        links=links,
        avoid=most_avoided(plan, nodes),
        requeue=requeue,
        hands_over=1 < links <= attempts and not (row and "submit" in row.forbids),
    )


def _room(plan: Plan, step: PlannedStep) -> Iterator[int]:
    """How many such jobs each limit of the site leaves room for, running and waiting ones together."""
    row, policy, launch = plan.cluster.queue_named(step.queue), plan.cluster.policy, step.step.launch
    yield from (limit for limit in (row and row.jobs_per_user, row and row.jobs_per_project) if limit)
    gpus = launch.job_nodes * launch.gpus_per_node
    if policy.max_gpus is not None and gpus:
        yield max(1, policy.max_gpus // gpus)
    if policy.max_nodes is not None:
        yield max(1, policy.max_nodes // launch.job_nodes)


def most_avoided(plan: Plan, nodes: int) -> int:
    """How many nodes a job of so many may be kept away from."""
    machine = plan.cluster.hardware.nodes
    return max(0, min(max(2, machine // AVOID_SHARE), machine - nodes))


def is_vetted(plan: Plan) -> bool:
    """Whether the run wants its nodes measured before they train, which not every scheduler's jobs do."""
    step, choice = plan.step_named(TRAIN), plan.run.resources.vet
    if step is None or step.here or step.step.launch.nodes < 2:
        return False
    return step.step.launch.nodes >= plan.cluster.launch.vet_nodes if choice is None else choice


def stop_place(plan: Plan) -> Loc | None:
    """Where the project may leave a stop file for a run of this name; the run's own name follows."""
    role = shared_role(plan.cluster)
    return Loc(role, f"stop-{plan.run.name}-") if role else None


def bad_nodes_place(cluster: Cluster) -> Loc | None:
    """Where users remember nodes that failed; the number of the user follows."""
    role = shared_role(cluster) or ("state" if "state" in cluster.storage else "")
    return Loc(role, f"nodes-{cluster.name}-") if role else None


def bad_nodes_words(cluster: Cluster) -> dict[str, Word]:
    """The same for a job, with those whose findings count, where the place is shared."""
    place = bad_nodes_place(cluster)
    if place is None:
        return {}
    words: dict[str, Word] = {"HPC_BAD_NODES": place}
    if shared_role(cluster):
        owners = [word for owner in cluster.owners_of(place.role) for word in (" ", owner)][1:]
        words["HPC_BAD_NODES_OWNERS"] = Join(*owners) if owners else ""
    return words


def shared_role(cluster: Cluster) -> str:
    """The storage role in which a project leaves what all of it read; empty where there is none."""
    shared = (role for role in SHARED if (facts := cluster.storage.get(role)) and facts.share == "project")
    return next(shared, "")


def with_time(run: RunSpec, cluster: Cluster) -> RunSpec:
    """The run with the time of one job: its own, else the longest that the queue gives, or all of `total`."""
    resources = run.resources
    if resources.total is None or resources.time is not None:
        return run
    count = queues.nodes(resources, cluster) + (resources.spare_nodes or 0)
    row = queues.choose(cluster, count, None, resources.queue)
    longest = _longest(row, count) if row else None
    time = resources.total if longest is None else min(resources.total, longest)
    return attrs.evolve(run, resources=attrs.evolve(resources, time=time))


def _longest(row: Queue, nodes: int) -> Duration | None:
    limits = [row.max_time] if row.max_time else []
    if row.max_node_minutes:
        limits.append(Duration(row.max_node_minutes * 60 // nodes))
    return min(limits, default=None)
