"""Which row of the site's limits a job falls into."""

from __future__ import annotations

import math

import attrs

from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.run import Resources


def nodes(resources: Resources, cluster: Cluster) -> int:
    """How many nodes: as asked, or as many as the GPUs need."""
    if resources.nodes is not None:
        return resources.nodes
    per_node = max(1, cluster.hardware.gpus_per_node)
    return math.ceil(resources.gpus / per_node) if resources.gpus else 1


def choose(cluster: Cluster, count: int, time: Duration | None, requested: str = "") -> Queue | None:
    """The named row, else the first automatic one that takes this many nodes for this long.

    When no row is long enough the longest for this many nodes is answered, so that the check can
    name the limit; None means that no row takes this many nodes.
    """
    if requested:
        return cluster.queue_named(requested)
    rows = [q for q in cluster.queue if q.auto and "batch" not in q.forbids and takes(q, count)]
    fitting = [q for q in rows if time is None or _between(q, time)]
    if fitting:
        return fitting[0]
    return max(rows, key=lambda q: q.max_time.seconds if q.max_time else 0, default=None)


def with_queue_hardware(cluster: Cluster, resources: Resources) -> Cluster:
    """The cluster as one run meets it: its hardware is that of the queue in which the training waits."""
    row = choose(cluster, nodes(resources, cluster), resources.time, resources.queue)
    if row is None or row.hardware is None:
        return cluster
    return attrs.evolve(cluster, hardware=row.hardware.of(cluster.hardware))


def with_held_nodes(cluster: Cluster) -> Cluster:
    """The cluster for somebody who holds nodes of it: every queue is open, as nothing is submitted."""
    rows = (attrs.evolve(q, forbids=tuple(w for w in q.forbids if w != "batch")) for q in cluster.queue)
    return attrs.evolve(cluster, queue=tuple(rows))


def _between(queue: Queue, time: Duration) -> bool:
    too_short = queue.min_time is not None and time < queue.min_time
    return not too_short and (queue.max_time is None or time <= queue.max_time)


def takes(queue: Queue, count: int) -> bool:
    """Whether a job of this many nodes may be in this row at all."""
    return queue.min_nodes <= count and (queue.max_nodes is None or count <= queue.max_nodes)
