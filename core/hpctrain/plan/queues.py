"""Which row of the site's limits a job falls into."""

from __future__ import annotations

import math

from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.run import Resources


def nodes(resources: Resources, cluster: Cluster) -> int:
    """How many nodes: as asked, or as many as the GPUs need."""
    if resources.nodes is not None:
        return resources.nodes
    per_node = max(1, cluster.hardware.gpus_per_node)
    return math.ceil(resources.gpus / per_node) if resources.gpus else 1


def choose(cluster: Cluster, count: int, time: Duration | None, wanted: str = "") -> Queue | None:
    """The named row, else the first automatic one that takes this many nodes for this long.

    When no row is long enough the longest for this many nodes is answered, so that the check can
    name the limit; None means that no row takes this many nodes.
    """
    if wanted:
        return cluster.queue_named(wanted)
    rows = [q for q in cluster.queue if q.auto and takes(q, count)]
    fitting = [q for q in rows if time is None or q.max_time is None or time <= q.max_time]
    if fitting:
        return fitting[0]
    return max(rows, key=lambda q: q.max_time.seconds if q.max_time else 0, default=None)


def takes(queue: Queue, count: int) -> bool:
    """Whether a job of this many nodes may be in this row at all."""
    return queue.min_nodes <= count and (queue.max_nodes is None or count <= queue.max_nodes)
