"""Where each step runs: the first place of the cluster that provides all it needs."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster, Place
from hpctrain.model.frozen import frozen
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
        found = _choose(step, cluster, behind_job)
        if found is None:
            problems.append(_nowhere(step, cluster))
            continue
        named = attrs.evolve(step, place=found.name, launch=_held(step, found, cluster))
        placed[step.name] = Placed(named, found, waits=found.here and behind_job)
    return tuple(placed.values()), tuple(problems)


def _twice(step: Step) -> Problem:
    return Problem(
        code="name",
        message=f"two steps of the run are called {step.name}: each has a folder of its name",
        where=f"assets.{step.name}",
        hint="another name for the asset",
    )


def _held(step: Step, found: Place, cluster: Cluster) -> Launch:
    """What a job holds when its step asks for no GPU itself: sites refuse jobs without one."""
    launch, facts = step.launch, cluster.launch
    if found.here or launch.gpus_per_node or not found.gpus:
        return launch
    memory = facts.memory_gb_per_gpu
    return attrs.evolve(
        launch,
        gpus_per_node=found.gpus,
        cpus_per_rank=max(launch.cpus_per_rank, facts.cpus_per_gpu * found.gpus),
        memory_gb=launch.memory_gb or (int(memory * found.gpus) if memory else None),
    )


def fits(step: Step, candidate: Place) -> bool:
    """Whether the place provides all that the step needs, for as long as it takes."""
    long_enough = candidate.max_minutes is None or step.minutes <= candidate.max_minutes
    return step.needs <= set(candidate.provides) and long_enough


def _choose(step: Step, cluster: Cluster, behind_job: bool) -> Place | None:
    candidates = [p for p in cluster.place if fits(step, p)]
    jobs = [p for p in candidates if not p.here]
    chosen = jobs if behind_job and jobs else candidates
    return chosen[0] if chosen else None


def _nowhere(step: Step, cluster: Cluster) -> Problem:
    wanted = " and ".join(_SAID[n] for n in sorted(step.needs, key=lambda n: n.value)) or "nothing"
    return Problem(
        code="no-place",
        message=f"step {step.name} needs {wanted} in one place for {step.minutes} minutes",
        notes=tuple(f"{cluster.name}: {_offer(p)}" for p in cluster.place),
        source=step.source,
    )


_SAID = {Need.NETWORK: "network", Need.TARGET: "target libraries", Need.GPU: "GPUs"}


def _offer(candidate: Place) -> str:
    has = ", ".join(_SAID[n] for n in Need if n in candidate.provides) or "nothing"
    limit = f", at most {candidate.max_minutes} minutes" if candidate.max_minutes else ""
    return f"{candidate.name} has {has}{limit}"
