"""Whether each node unpacks its own copy of the environment, and who brings it there."""

from __future__ import annotations

from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.plan import queues

NODE = "nodelocal"
"""The role of each node's own disk."""


def packs(asked: bool | str, run: RunSpec, cluster: Cluster) -> bool:
    """Whether this run's nodes unpack: as said, or as `plan --explain startup` predicts it for so many."""
    if asked != "auto":
        return bool(asked)
    if NODE not in cluster.storage:
        return False
    from hpctrain.plan import startup

    ranks = max(1, cluster.hardware.gpus_per_node)
    return startup.best(queues.nodes(run.resources, cluster), ranks, node_disk=True) != startup.SHARED


def spreads(run: RunSpec, cluster: Cluster) -> bool:
    """Whether one broadcast is predicted to be quicker than all these nodes reading the archive."""
    from hpctrain.plan import startup

    return startup.broadcast_pays(queues.nodes(run.resources, cluster))
