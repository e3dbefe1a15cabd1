"""What the site allows and asks for beyond its tables: who raises the cap, when jobs begin."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import Cluster, Plan, Problem, RunSpec


def problems(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterator[Problem]:
    """A way out beside the refusal of too many GPUs; a word about business hours for the largest jobs."""
    for planned in plan.steps:
        if planned.step.trains and not planned.here:
            launch = planned.step.launch
            yield from _cap(cluster, launch.nodes * launch.gpus_per_node)
            yield from _hours(run, cluster, launch.nodes)


def _cap(cluster: Cluster, gpus: int) -> Iterator[Problem]:
    cap, fact = cluster.policy.max_gpus, cluster.facts["cap"]
    if cap is None or gpus <= cap:
        return
    yield Problem(
        code="gpu-cap",
        message=f"{cap} GPUs are what all jobs of a project may hold together, unless BriCS gave it more",
        where="resources.gpus",
        notes=(
            f"ask for more at {fact['asked_at']}; the limit is the QoS {fact['qos']} of your project",
            f"then write it into /etc/hpctrain/{cluster.name}.toml, or a file that HPCTRAIN_SITE names",
            _source(cluster, fact["source"]),
        ),
        hint=f'[policy]\nsource = "{fact["source"]}"\nmax_gpus = {gpus}',
        fatal=False,
    )


def _hours(run: RunSpec, cluster: Cluster, nodes: int) -> Iterator[Problem]:
    fact = cluster.facts["large_jobs"]
    words = run.resources.ask.get(cluster.scheduler, ())
    if nodes < fact["nodes"] or any(word.split("=")[0] in ("--begin", "-b") for word in words):
        return
    yield Problem(
        code="business-hours",
        message=f"{nodes} nodes: the site asks that jobs of {fact['nodes']} and more begin outside its"
        " business hours",
        where="resources.nodes",
        notes=(_source(cluster, fact["source"]),),
        hint=f'[resources]\nask = {{ {cluster.scheduler} = ["--begin={fact["begin"]}"] }}',
        fatal=False,
    )


def _source(cluster: Cluster, ident: str) -> str:
    source = cluster.source_of(ident)
    return f"{source.title}, checked {source.checked}" if source else ident
