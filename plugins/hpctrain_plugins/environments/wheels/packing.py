"""Whether each node unpacks its own copy of the environment, and who brings it there."""

from __future__ import annotations

from hpctrain.plugin import Cluster, RunSpec
from hpctrain.toolbox import node_count

NODE = "nodelocal"
"""The role of each node's own disk."""


def packs(setting: bool | str, run: RunSpec, cluster: Cluster) -> bool:
    """Whether this run's nodes unpack: as said, or as `plan --explain startup` predicts it for so many."""
    if setting != "auto":
        return bool(setting)
    if NODE not in cluster.storage:
        return False
    from hpctrain.toolbox import SHARED_START, best_start

    ranks = max(1, cluster.hardware.gpus_per_node)
    return best_start(node_count(run.resources, cluster), ranks, node_disk=True) != SHARED_START


def spreads(run: RunSpec, cluster: Cluster) -> bool:
    """Whether one broadcast is predicted to be quicker than all these nodes reading the archive."""
    from hpctrain.toolbox import broadcast_pays

    return broadcast_pays(node_count(run.resources, cluster))
