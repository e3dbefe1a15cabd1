"""A run and a cluster for the trainers' hooks, made by hand."""

from __future__ import annotations

from typing import Any

from hpctrain.model.cluster import Cluster, Hardware, LaunchFacts, Place, Policy, Source, Storage
from hpctrain.model.duration import Duration
from hpctrain.model.network import Network
from hpctrain.model.plan import Binding
from hpctrain.model.run import Asset, Checkpoint, Resources, RunSpec, TrainSpec
from hpctrain.model.step import Need
from hpctrain.model.words import Loc, Word

ASSETS: dict[str, Word] = {
    "model": Loc("assets", "model-1"),
    "dataset": Loc("assets", "dataset-2"),
    "demo": Loc("assets", "demo-3"),
    "mine": "/home/ada/data",
}
BINDING = Binding(roots={"assets": "/fs/assets", "runs": "/fs/runs", "checkpoints": "/fs/ck"}, user="ada")


def cluster(gpus: int = 4) -> Cluster:
    """A toy with so many GPUs on a node."""
    return Cluster(
        name="toy",
        title="A toy",
        scheduler="local",
        arch="x86_64",
        source=(Source(id="doc", title="The toy's page", checked="2026-11-20"),),
        hardware=Hardware(source="doc", gpus_per_node=gpus, peak_tflops=989 if gpus else 0),
        launch=LaunchFacts(source="doc"),
        policy=Policy(source="doc"),
        network=Network(source="doc"),
        place=(Place(name="here", provides=tuple(Need), here=True, source="doc"),),
        storage={role: Storage(path=f"/fs/{role}", source="doc") for role in ("assets", "runs")},
    )


def run(use: str, options: Any = None, **fields: Any) -> RunSpec:
    """A run with every asset of ASSETS."""
    values: dict[str, Any] = {
        "resources": Resources(nodes=2, time=Duration.parse("1h")),
        "checkpoint": Checkpoint(every=Duration.parse("30m")),
        "assets": {
            "model": Asset(hub="org/model"),
            "dataset": Asset(hub="org/data", split="train"),
            "demo": Asset(command=("python", "make_data.py")),
            "mine": Asset(path="/home/ada/data"),
        },
    }
    spec = TrainSpec(use=use, options=options)
    return RunSpec(name="r", cluster="toy", train=spec, **{**values, **fields})
