"""The prediction of start-up: its shape, its choice, and the page that shows its inputs."""

from __future__ import annotations

import attrs

from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.plan import startup
from hpctrain.plan.explain import explain
from hpctrain.plan.planner import make


def test_more_nodes_take_longer_and_a_broadcast_grows_slowest() -> None:
    for way in range(3):
        seconds = [startup.curves(n, 8)[way].seconds for n in startup.NODES]
        assert seconds == sorted(seconds)
    shared, mounted, broadcast = startup.curves(9400, 8)
    assert shared.seconds > mounted.seconds > broadcast.seconds
    assert 3 * 3600 < shared.seconds < 5 * 3600
    assert shared.operations == 9400 * (10_400 + 2 * 8_400 * 8)


def test_what_is_chosen_depends_on_nodes_and_disks() -> None:
    assert startup.best(1, 8, node_disk=True) == startup.SHARED
    assert startup.best(9400, 8, node_disk=True) == startup.BROADCAST
    assert startup.best(9400, 8, node_disk=False) == startup.MOUNTED


def test_the_page_shows_inputs_and_curves(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    run = attrs.evolve(run, resources=attrs.evolve(run.resources, nodes=2))
    (entry,) = explain(make(run, cluster, (), hooks.call), "startup")
    shown = dict(entry["rows"])
    assert shown["asked"] == "2 nodes, 4 ranks each"
    assert "10,400 paths a node" in shown["files"]
    assert all("9,400: " in shown[f"{way} by nodes"] for way in startup.MEANS)
    assert "predicted" in shown["sure"]
