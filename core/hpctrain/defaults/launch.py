"""Core's answer to `launch`: from what was asked for and the facts of the cluster."""

from __future__ import annotations

from hpctrain.errors import ConfigError
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Resources, RunSpec
from hpctrain.model.step import Launch, Ranks
from hpctrain.model.train import Train
from hpctrain.plan import queues


@hookimpl(trylast=True)
def launch(run: RunSpec, cluster: Cluster, train: Train) -> Launch:
    """The training ranks: nodes, GPUs, cores, binding, memory."""
    facts, hardware = cluster.launch, cluster.hardware
    # One computer is one node, whatever a run file asks of a cluster; the checks say so.
    nodes = min(queues.nodes(run.resources, cluster), hardware.nodes)
    gpus = gpus_per_node(run.resources, cluster, nodes)
    ranks_here = max(1, gpus) if train.ranks is Ranks.PER_GPU else 1
    return Launch(
        ranks=train.ranks,
        nodes=nodes,
        gpus_per_node=gpus,
        cpus_per_rank=_cores(cluster, gpus, ranks_here),
        memory_gb=_memory(run.resources, cluster, gpus),
        spare_nodes=run.resources.spare_nodes,
        bind=facts.bind if gpus else "",
        visible=facts.visible if gpus and train.ranks is Ranks.PER_GPU else "all",
    )


def gpus_per_node(resources: Resources, cluster: Cluster, nodes: int) -> int:
    """The GPUs of each node: all of them, unless the run asks for fewer."""
    most = cluster.hardware.gpus_per_node
    if resources.gpus is None or not most:
        return most
    per_node, remainder = divmod(resources.gpus, nodes)
    if per_node > most or remainder or not per_node:
        raise ConfigError.of(
            "gpus",
            f"{resources.gpus} GPUs cannot be spread evenly over {_nodes(nodes)} of {most}",
            where="resources.gpus",
            hint=f"gpus = {min(max(per_node, 1), most) * nodes}",
        )
    return per_node


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _cores(cluster: Cluster, gpus: int, ranks: int) -> int:
    if not gpus:
        return max(1, cluster.hardware.cores_per_node // ranks)
    cores = cluster.launch.cpus_per_gpu * gpus // ranks
    return max(1, min(cores, cluster.hardware.cores_per_node // ranks))


def _memory(resources: Resources, cluster: Cluster, gpus: int) -> int | None:
    if resources.memory_gb is not None:
        return resources.memory_gb
    per_gpu = cluster.launch.memory_gb_per_gpu
    return int(per_gpu * gpus) if per_gpu and gpus else None
