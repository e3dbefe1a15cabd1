"""How a training program learns which rank it is: the variables and torchrun, for all trainers."""

from __future__ import annotations

from hpctrain.plugin import Cluster, EnvVar, RunSpec, Var, Word

PER_GPU = (
    EnvVar(name="RANK", value=Var("HPC_RANK"), why="which process this is, as torch reads it"),
    EnvVar(name="LOCAL_RANK", value=Var("HPC_LOCAL_RANK"), why="which GPU of the node is its own"),
    EnvVar(name="WORLD_SIZE", value=Var("HPC_WORLD"), why="how many processes train together"),
    EnvVar(name="MASTER_ADDR", value=Var("HPC_HEAD"), why="where rank 0 listens for the others"),
    EnvVar(name="MASTER_PORT", value=Var("HPC_PORT"), why="derived from the job, so that two never meet"),
)
"""The scheduler starts every rank: signals reach it and its exit code comes back."""


def torchrun(processes: int) -> tuple[Word, ...]:
    """One agent on each node starts `processes` ranks.

    The rendezvous is static: it needs no comparison of host names, which differ between networks.
    """
    return (
        *("python", "-m", "torch.distributed.run"),
        *("--nnodes", Var("HPC_NODES"), "--node-rank", Var("HPC_NODE_RANK")),
        *("--nproc-per-node", str(processes)),
        *("--master-addr", Var("HPC_HEAD"), "--master-port", Var("HPC_PORT")),
    )


def gpus_per_node(run: RunSpec, cluster: Cluster) -> int:
    """GPUs of one node that the run uses."""
    available = cluster.hardware.gpus_per_node
    return min(run.resources.gpus or available, available)


def world(run: RunSpec, cluster: Cluster, processes: int = 0) -> int:
    """How many ranks train: GPUs, or `processes` on each node, or one a node without GPUs."""
    ranks_per_node = processes or max(1, gpus_per_node(run, cluster))
    if run.resources.gpus and not processes:
        return run.resources.gpus
    return ranks_per_node * (run.resources.nodes or 1)
