"""Frontier as hpctrain sees it: data in `cluster.toml`; `around` and `folders` say what tables cannot."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from hpctrain.plugin import Asset, Cluster, Layer, Plan, Problem, RunSpec, Step, hookimpl

HPCTRAIN_API = 1


@hookimpl(tryfirst=True)
def surround(run: RunSpec, cluster: Cluster, step: Step) -> Layer | None:
    """Caches of each node, the number of a rank's only GPU, what builds look for, DeepSpeed's file."""
    from hpc_frontier import around

    return around.layer(run, cluster, step)


@hookimpl(wrapper=True)
def prepare_data(
    name: str, asset: Asset, cluster: Cluster
) -> Generator[None, tuple[Step, ...] | None, tuple[Step, ...] | None]:
    """Snapshots lie where the tutorial's do."""
    from hpc_frontier import folders

    steps = yield
    return folders.placed(steps, name, asset, cluster) if steps else steps


@hookimpl
def check_run(run: RunSpec, plan: Plan) -> Iterable[Problem]:
    """A torch for another ROCm than the module that is loaded, and what DeepSpeed's file cannot hold."""
    from hpc_frontier import around, rocm

    yield from rocm.problems(run, plan)
    if run.env and around.has_deepspeed(run):
        from hpc_frontier import deepspeed

        yield from deepspeed.problems(run)
