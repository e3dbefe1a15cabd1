"""Plans made by hand, and run directories rendered from them, for tests of schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs

from hpctrain.model.cluster import Cluster, Hardware, LaunchFacts, Place, Policy, Queue, Storage
from hpctrain.model.duration import Duration
from hpctrain.model.job import JobFiles
from hpctrain.model.network import Network
from hpctrain.model.plan import Binding, Plan, PlannedStep, Surround
from hpctrain.model.run import Resources, RunSpec
from hpctrain.model.step import Launch, Ranks, Step
from hpctrain.model.train import Train
from hpctrain.model.words import Raw, Word
from hpctrain.render.tree import HELPERS

WHO = 'echo "$HPC_RANK $HPC_LOCAL_RANK $HPC_NODE_RANK $HPC_WORLD $HPC_NODES $HPC_GPUS $HPC_HEAD $HPC_ATTEMPT"'


def cluster(**facts: Any) -> Cluster:
    """A small cluster; `facts` are fields of its launch facts."""
    return Cluster(
        name="toy",
        title="Toy",
        scheduler="slurm",
        arch="x86_64",
        hardware=Hardware(source="s", gpus_per_node=4, cores_per_node=64, nodes=2),
        launch=LaunchFacts(source="s", **facts),
        network=Network(source="s"),
        policy=Policy(source="s", submit_env=("TOY_LICENCE",)),
        source=(),
        place=(Place(name="compute", provides=(), source="s"),),
        queue=(Queue(name="batch", source="s", ask={"slurm": ("--partition=batch",)}),),
        storage={"runs": Storage(path="/runs", source="s")},
    )


def step(
    *lines: str, name: str = "train", trains: bool = False, minutes: int = 2, **layout: Any
) -> Step:  # fmt: skip
    """A step that runs bash lines with `layout` as its launch."""
    return Step(
        name=name,
        commands=tuple(Raw(line) for line in lines),
        launch=Launch(**layout),
        minutes=minutes,
        trains=trains,
        place="compute",
    )


def plan(
    one: Step,
    *,
    on: Cluster | None = None,
    time: str = "",
    ask: tuple[str, ...] = (),
    account: str = "",
    mail: str = "",
    layers: Mapping[str, tuple[Word, ...]] | None = None,
    starter: Mapping[str, tuple[Word, ...]] | None = None,
    name: str = "toy-run",
    scheduler: str = "slurm",
) -> Plan:
    """A plan of one step."""
    resources = Resources(
        time=Duration.parse(time) if time else None,
        ask={scheduler: ask} if ask else {},
        account=account,
        mail=mail,
    )
    around = Surround(ask=dict(layers or {}), starter=dict(starter or {}))
    return Plan(
        run=RunSpec(name=name, cluster="toy", resources=resources),
        cluster=on or cluster(),
        pins=(),
        steps=(PlannedStep(step=one, here=False, around=around, queue="batch"),),
        digest="0123456789abcdef",
        train=Train(argv=("true",)) if one.trains else None,
    )


def binding(root: Path) -> Binding:
    """Roles below `root`."""
    roots = {role: str(root / role) for role in ("runs", "checkpoints", "state", "data")}
    return Binding(roots=roots, user="me")


def write(folder: Path, rendered: JobFiles) -> None:
    """A step's files and the helpers that all jobs source."""
    helpers = {f"code/{n}": files("hpctrain.render").joinpath(n).read_text() for n in HELPERS}
    for path, text in {**rendered.files, **helpers}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "logs").mkdir(exist_ok=True)


def many(per_node: int = 2, nodes: int = 2, **more: Any) -> dict[str, Any]:
    """The layout of several ranks."""
    return {"ranks": Ranks.PER_GPU, "nodes": nodes, "gpus_per_node": per_node, "cpus_per_rank": 2, **more}


evolve = attrs.evolve
