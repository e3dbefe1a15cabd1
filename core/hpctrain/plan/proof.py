"""Where training has no network: a step that proves, before anything is queued, that it needs none."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.model.cluster import Cluster
from hpctrain.model.step import After, Need, Step
from hpctrain.model.words import Cmd, Join, Var
from hpctrain.plan.place import fits

PROOF = "offline"


def at_once(step: Step) -> bool:
    """Whether a step runs before any job. What spares the queue waits for such steps alone: behind a job it
    would be a job too."""
    return not step.inside and not step.after


def proof(data: Iterable[Step], train: Step, cluster: Cluster) -> Step | None:
    """A step behind those that fetch; None where training has the network, or nothing is fetched."""
    fetched = (s for s in data if at_once(s) and Need.NETWORK in s.needs)
    brought = [(s, s.makes) for s in fetched if s.makes is not None]
    place = next((p for p in cluster.place if fits(train, p, cluster)), None)
    if not brought or place is None or Need.NETWORK in place.provides:
        return None
    words = [
        Join(f"{s.name}={artifact.inputs.get('kind', 'file')}:", artifact.loc) for s, artifact in brought
    ]
    return Step(
        name=PROOF,
        commands=(Cmd.of(Var("HPC_PYTHON"), "-m", "hpctrain_job.staged", *words),),
        after=tuple(After(step.name) for step, _ in brought),
        minutes=5,
        source="core",
    )
