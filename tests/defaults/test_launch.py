"""The training ranks that core lays out from the facts."""

from __future__ import annotations

from typing import Any

import pytest

from hpctrain.defaults.launch import launch
from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Resources, RunSpec
from hpctrain.model.step import Launch, Ranks
from hpctrain.model.train import Train
from tests.defaults.rig import cluster

GPUS = cluster(arch="x86_64", gpus_per_node=4, gpu_kind="cuda", cores_per_node=64, nodes=100, memory_gb=512)


def laid(ranks: Ranks = Ranks.PER_GPU, on: Cluster = GPUS, **resources: Any) -> Launch:
    spec = RunSpec(name="r", cluster="toy", resources=Resources(**resources))
    return launch(run=spec, cluster=on, train=Train(argv=("x",), ranks=ranks))


@pytest.mark.parametrize(
    ("asked", "nodes", "each"),
    [
        ({}, 1, 4),
        ({"nodes": 3}, 3, 4),
        ({"gpus": 2}, 1, 2),
        ({"gpus": 4}, 1, 4),
        ({"gpus": 6}, 2, 3),
        ({"gpus": 16}, 4, 4),
        ({"nodes": 2, "gpus": 4}, 2, 2),
    ],
)
def test_nodes_and_gpus(asked: dict[str, Any], nodes: int, each: int) -> None:
    found = laid(**asked)
    assert (found.nodes, found.gpus_per_node, found.world) == (nodes, each, nodes * each)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ({"gpus": 7}, "gpus = 6"),
        ({"nodes": 2, "gpus": 12}, "gpus = 8"),
        ({"nodes": 4, "gpus": 2}, "gpus = 4"),
    ],
)
def test_gpus_that_do_not_spread(asked: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError, match="cannot be spread evenly") as caught:
        laid(**asked)
    assert caught.value.problems[0].hint == hint


def test_cores_follow_the_gpus() -> None:
    assert laid().cpus_per_rank == 8
    assert laid(Ranks.PER_NODE).cpus_per_rank == 32
    assert laid(Ranks.PER_NODE, gpus=2).cpus_per_rank == 16


def test_memory_is_what_was_asked_for() -> None:
    assert laid().memory_gb is None
    assert laid(memory_gb=100).memory_gb == 100


def test_one_computer_is_one_node() -> None:
    found = laid(on=cluster(cores_per_node=8), nodes=16)
    assert (found.nodes, found.gpus_per_node, found.world, found.cpus_per_rank) == (1, 0, 1, 8)
    assert laid(on=cluster(), gpus=16).world == 1
