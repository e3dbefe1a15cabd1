"""A run inside nodes that its user holds already: whether we stand in some, and whether they suffice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hpctrain.errors import NotReachable, Problem, raise_fatal
from hpctrain.model.job import Allocation
from hpctrain.model.plan import Plan, Survey
from hpctrain.model.step import Need
from hpctrain.run.here import host_name, is_here
from hpctrain.run.tools import Tools

if TYPE_CHECKING:
    from hpctrain.session import Session


def found(session: Session, tools: Tools) -> Allocation:
    """The allocation around us; NotReachable on a login node, which is nobody's to compute on."""
    mine: Allocation | None = session.hooks.call("allocation", environ=session.environ, tools=tools)
    if mine is None:
        what = "a login node" if is_here(session.cluster) else "a computer"
        raise NotReachable.of(
            "no-allocation",
            f"{host_name()} is {what} of {session.cluster.name} and no allocation of yours: "
            "nothing is computed here",
            hint=f"hpctrain submit {session.raw.document.file}      (or hpctrain shell, then this again)",
        )
    return mine


def judge(session: Session, mine: Allocation) -> tuple[Problem, ...]:
    """What speaks against running in there; fatal problems raise."""
    plan, survey = session.plan(), session.survey()
    problems = (*_small(plan, mine), *_short(plan, mine), *_unreachable(session, survey))
    raise_fatal(problems)
    return problems


def _small(plan: Plan, mine: Allocation) -> Iterator[Problem]:
    needed = max((s.step.launch.nodes for s in plan.steps), default=1)
    if needed > mine.nodes:
        yield Problem(
            code="small-allocation",
            message=f"the run takes {needed} nodes, job {mine.job} holds {mine.nodes}",
            where="resources.nodes",
            hint=f"--set resources.nodes={mine.nodes}",
        )
    # The scheduler's starter would wait for cores that never come.
    cores = max((s.step.launch.ranks_per_node * s.step.launch.cpus_per_rank for s in plan.steps), default=1)
    if mine.cpus is not None and cores > mine.cpus:
        yield Problem(
            code="small-allocation",
            message=f"the run takes {cores} cores of each node, job {mine.job} holds {mine.cpus}",
            where="resources",
            notes=(f"{plan.cluster.launch.cpus_per_gpu} cores for each GPU ({plan.cluster.name})",),
            hint="hold whole nodes, or ask for fewer: --set resources.gpus=1",
        )


def _short(plan: Plan, mine: Allocation) -> Iterator[Problem]:
    time = plan.run.resources.time
    if time is not None and mine.left_s is not None and mine.left_s < time.seconds:
        yield Problem(
            code="short-allocation",
            message=f"the run may take {time.short}, job {mine.job} ends in {mine.left_s // 60}m",
            where="resources.time",
            fatal=False,
        )


def _unreachable(session: Session, survey: Survey) -> Iterator[Problem]:
    """Steps that need the internet, which a compute node may not have: they are done before."""
    if is_here(session.cluster):
        return
    places = {place.name: place for place in session.cluster.place}
    for planned in session.plan().steps:
        step = planned.step
        here = places[step.place].here
        if here and Need.NETWORK in step.needs and not survey.made.get(step.name):
            yield Problem(
                code="not-staged",
                message=f"step {step.name} needs the network of a login node, and this is {host_name()}",
                hint=f"hpctrain stage {session.raw.document.file}      (on a login node)",
            )
