"""The stand-in's queues, made of a cluster's facts, so that what these allow is what it takes."""

from __future__ import annotations

from hpctrain.model.cluster import Cluster, Queue


def queues_of(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Each queue that jobs are handed to, with the widest of its rows' limits; it routes none on."""
    queues: dict[str, dict[str, int]] = {}
    for row in cluster.queue:
        limits = queues.setdefault(_asked(row), {})
        for name, limit in _limits(row).items():
            limits[name] = max(limit, limits.get(name, 0))
    return queues


def _asked(row: Queue) -> str:
    (name,) = (word.split()[1] for word in row.ask["pbs"] if word.startswith("-q "))
    return name


def _limits(row: Queue) -> dict[str, int]:
    found = {
        "nodect": row.max_nodes,
        "walltime": row.max_time.seconds if row.max_time else None,
        "max_queued": row.jobs_per_user,
    }
    return {name: limit for name, limit in found.items() if limit is not None}
