"""A run inside nodes that its user holds already: whether we stand in some, and whether they suffice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpctrain.errors import NotReachable, Problem, raise_fatal
from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster
from hpctrain.model.job import Allocation
from hpctrain.model.plan import Plan
from hpctrain.model.step import Need
from hpctrain.run.prepared import Prepared
from hpctrain.run.system.tools import Tools
from hpctrain.run.this_computer import host_name, is_here


def current_allocation(
    hooks: Hooks, cluster: Cluster, environ: Mapping[str, str], tools: Tools, run_file: str
) -> Allocation:
    """The allocation around us; NotReachable on a login node, which is nobody's to compute on."""
    allocation: Allocation | None = hooks.call("allocation", environ=environ, tools=tools)
    if allocation is None:
        role = f"a login node of {cluster.name}" if is_here(cluster) else f"no node of {cluster.name}"
        raise NotReachable.of(
            "no-allocation",
            f"{host_name()} is {role}, and in no job of yours: nothing is computed here",
            hint=f"hpctrain submit {run_file}      (or hpctrain shell, then this again)",
        )
    return allocation


def judge(prepared: Prepared, allocation: Allocation) -> tuple[Problem, ...]:
    """What speaks against running in that allocation; fatal problems raise."""
    plan = prepared.plan
    problems = (*_small(plan, allocation), *_short(plan, allocation), *_unreachable(prepared))
    raise_fatal(problems)
    return problems


def _small(plan: Plan, allocation: Allocation) -> Iterator[Problem]:
    needed = max((s.step.launch.nodes for s in plan.steps), default=1)
    if needed > allocation.nodes:
        yield Problem(
            code="small-allocation",
            message=f"the run takes {needed} nodes, job {allocation.job} holds {allocation.nodes}",
            where="resources.nodes",
            hint=f"--set resources.nodes={allocation.nodes}",
        )
    # The scheduler's starter would wait for cores that never come.
    cores = max((s.step.launch.ranks_per_node * s.step.launch.cpus_per_rank for s in plan.steps), default=1)
    if allocation.cpus is not None and cores > allocation.cpus:
        yield Problem(
            code="small-allocation",
            message=f"the run takes {cores} cores of each node, job {allocation.job} holds {allocation.cpus}",
            where="resources",
            notes=(f"{plan.cluster.launch.cpus_per_gpu} cores for each GPU ({plan.cluster.name})",),
            hint="hold whole nodes, or ask for fewer: --set resources.gpus=1",
        )


def _short(plan: Plan, allocation: Allocation) -> Iterator[Problem]:
    time = plan.run.resources.time
    if time is not None and allocation.left_s is not None and allocation.left_s < time.seconds:
        yield Problem(
            code="short-allocation",
            message=f"the run may take {time.short}, job {allocation.job} ends in {allocation.left_s // 60}m",
            where="resources.time",
            fatal=False,
        )


def _unreachable(prepared: Prepared) -> Iterator[Problem]:
    """Steps that need the internet, which a compute node may not have: they are done before."""
    plan = prepared.plan
    if is_here(plan.cluster):
        return
    places = {place.name: place for place in plan.cluster.place}
    survey = prepared.survey()
    for step in (planned.step for planned in plan.steps):
        if (
            places[step.place].here
            and Need.NETWORK in step.needs
            and not survey.artifact_exists.get(step.name)
        ):
            yield Problem(
                code="not-staged",
                message=f"step {step.name} needs the network of a login node, and this is {host_name()}",
                hint=f"hpctrain stage {prepared.run_file_shown}      (on a login node)",
            )
