"""Where each step runs: the first place of the cluster that provides all it needs."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster, Place
from hpctrain.model.step import Launch, Need, Step


@frozen
class Placed:
    """A step with its place; `waits` when it is a step of the login node behind a job."""

    step: Step
    place: Place
    waits: bool = False


def place(steps: Iterable[Step], cluster: Cluster) -> tuple[tuple[Placed, ...], tuple[Problem, ...]]:
    """Place every step in order; a step that fits nowhere is a problem that names each place."""
    placed: dict[str, Placed] = {}
    problems = []
    for step in steps:
        if step.name in placed:
            problems.append(_twice(step))
        before = [placed[a.step] for a in step.after if a.step in placed]
        behind_job = any(not p.place.here or p.waits for p in before)
        chosen = _choose(step, cluster, behind_job)
        if chosen is None:
            problems.append(_nowhere(step, cluster))
            continue
        named = attrs.evolve(step, place=chosen.name, launch=_job_launch(step, chosen, cluster))
        placed[step.name] = Placed(named, chosen, waits=chosen.here and behind_job)
    return tuple(placed.values()), tuple(problems)


def _twice(step: Step) -> Problem:
    return Problem(
        code="name",
        message=f"two steps of the run are called {step.name}: each has a folder of its name",
        where=f"assets.{step.name}",
        hint="another name for the asset",
    )


def _job_launch(step: Step, chosen: Place, cluster: Cluster) -> Launch:
    """What a job holds besides what its step asks for: GPUs where sites refuse jobs without one, and the
    memory that goes with GPUs, which a site may demand or give too little of by default."""
    launch, facts = step.launch, cluster.launch
    gpus = launch.gpus_per_node or chosen.gpus
    if chosen.here or not gpus:
        return launch
    memory = facts.memory_gb_per_gpu
    with_memory = attrs.evolve(launch, memory_gb=launch.memory_gb or (int(memory * gpus) if memory else None))
    if launch.gpus_per_node:
        return with_memory
    return attrs.evolve(
        with_memory, gpus_per_node=gpus, cpus_per_rank=max(launch.cpus_per_rank, facts.cpus_per_gpu * gpus)
    )


def fits(step: Step, candidate: Place, cluster: Cluster) -> bool:
    """Whether the place provides all that the step needs for as long as it takes, and may keep its result."""
    long_enough = candidate.max_minutes is None or step.minutes <= candidate.max_minutes
    return step.needs <= set(candidate.provides) and long_enough and _may_keep(step, candidate, cluster)


def _may_keep(step: Step, candidate: Place, cluster: Cluster) -> bool:
    """Whether what the step makes lies where its place may write."""
    storage = cluster.storage.get(step.makes.role) if step.makes else None
    return storage is None or not storage.writable or candidate.name in storage.writable


def _choose(step: Step, cluster: Cluster, behind_job: bool) -> Place | None:
    candidates = [p for p in cluster.place if fits(step, p, cluster)]
    jobs = [p for p in candidates if not p.here]
    chosen = jobs if behind_job and jobs else candidates
    return chosen[0] if chosen else None


def _nowhere(step: Step, cluster: Cluster) -> Problem:
    needed = " and ".join(_NEED_TEXTS[n] for n in sorted(step.needs, key=lambda n: n.value)) or "nothing"
    return Problem(
        code="no-place",
        message=f"step {step.name} needs {needed} in one place for {step.minutes} minutes",
        notes=(
            *(f"{cluster.name}: {_offer(p)}" for p in cluster.place),
            *(_closed(step, p, cluster) for p in cluster.place if not _may_keep(step, p, cluster)),
        ),
        source=step.source,
    )


_NEED_TEXTS = {Need.NETWORK: "network", Need.TARGET: "target libraries", Need.GPU: "GPUs"}


def _closed(step: Step, candidate: Place, cluster: Cluster) -> str:
    role = step.makes.role if step.makes else ""
    return f"{cluster.name}: {candidate.name} cannot write to {role} ({cluster.storage[role].path})"


def _offer(candidate: Place) -> str:
    has = ", ".join(_NEED_TEXTS[n] for n in Need if n in candidate.provides) or "nothing"
    limit = f", at most {candidate.max_minutes} minutes" if candidate.max_minutes else ""
    return f"{candidate.name} has {has}{limit}"
