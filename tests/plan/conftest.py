"""A small cluster and run, made by hand: two places, two queues, one fact about the network."""

from __future__ import annotations

from typing import Any

import pytest

from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.marker import hookimpl
from hpctrain.hooks.scan import Entry
from hpctrain.model.cluster import (
    Cluster,
    Hardware,
    LaunchFacts,
    Place,
    Policy,
    Queue,
    Source,
    Storage,
)
from hpctrain.model.duration import Duration
from hpctrain.model.network import Network, TrainingVar
from hpctrain.model.run import Asset, Environment, Resources, RunSpec, TrainSpec
from hpctrain.model.step import Artifact, Launch, Need, Ranks, Step
from hpctrain.model.train import Train
from hpctrain.model.words import Cmd, Join, Var


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        name="toy",
        title="A toy",
        scheduler="local",
        arch="x86_64",
        source=(Source(id="doc", title="The toy's page", checked="2026-11-20"),),
        hardware=Hardware(source="doc", gpu="X", gpu_kind="cuda", gpus_per_node=4),
        launch=LaunchFacts(source="doc"),
        policy=Policy(source="doc"),
        network=Network(
            source="doc",
            var=(
                TrainingVar(name="NCCL_NET", value="OFI", why="else TCP", source="doc", nodes="many"),
                TrainingVar(name="CACHE", value="/tmp/${USER}/x", why="shared disks are slow", source="doc"),
            ),
        ),
        place=(
            Place(name="login", provides=(Need.NETWORK,), here=True, source="doc"),
            Place(name="compute", provides=(Need.TARGET, Need.GPU), source="doc"),
        ),
        queue=(
            Queue(name="short", source="doc", max_nodes=2, max_time=Duration.parse("2h")),
            Queue(name="long", source="doc", min_nodes=2, max_time=Duration.parse("1d")),
            Queue(name="debug", source="doc", auto=False, max_time=Duration.parse("30m")),
        ),
        storage={r: Storage(path=f"/fs/{r}", source="doc") for r in ("env", "assets", "runs", "checkpoints")},
    )


@pytest.fixture
def run() -> RunSpec:
    return RunSpec(
        name="r",
        cluster="toy",
        resources=Resources(nodes=2, time=Duration.parse("1h")),
        environment=Environment(use="venv"),
        assets={"data": Asset(url="http://x/y")},
        train=TrainSpec(use="command"),
    )


class Technology:
    """An environment, an asset and a trainer in a few lines."""

    @hookimpl
    def build_env(self, cluster: Any, pins: Any) -> list[Step]:
        wheels = Artifact(name="wheels", role="env", inputs={"p": 1}, arch=cluster.arch, pins=pins)
        made = Artifact(name="env", role="env", inputs={"p": 1}, arch=cluster.arch, pins=pins)
        get = Cmd.of("pip", "download", "-d", Var("WORK"))
        put = Cmd.of("pip", "install", wheels.loc)
        return [
            Step(name="wheels", commands=(get,), needs=frozenset({Need.NETWORK}), makes=wheels),
            Step(name="env", commands=(put,), needs=frozenset({Need.TARGET}), makes=made),
        ]

    @hookimpl
    def prepare_data(self, name: str, asset: Any) -> list[Step]:
        made = Artifact(name="file", role="assets", inputs={"url": asset.url}, arch="any")
        return [Step(name=name, commands=(Cmd.of("get"),), needs=frozenset({Need.NETWORK}), makes=made)]

    @hookimpl
    def train_command(self, assets: Any) -> Train:
        return Train(argv=("train", Join("--data=", assets["data"])))

    @hookimpl
    def launch(self, run: RunSpec) -> Launch:
        return Launch(ranks=Ranks.PER_GPU, nodes=run.resources.nodes or 1, gpus_per_node=4)

    @hookimpl
    def enter_env(self) -> None:
        return None


@pytest.fixture
def hooks() -> Hooks:
    found = Hooks()
    found.add(Entry("environments", "venv", "m", "d", "1"), Technology())
    return found
