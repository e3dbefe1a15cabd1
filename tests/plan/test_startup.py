"""The prediction of start-up: its shape, its choice, and the page that shows its inputs."""

from __future__ import annotations

import attrs
import pytest

from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.plan import startup
from hpctrain.plan.explain import explain
from hpctrain.plan.planner import make

AURORA = (
    (8, 69.7, 29.3),
    (16, 89.7, 31.6),
    (32, 89.2, 20.9),
    (64, 91.2, 34.6),
    (128, 110.4, 30.5),
    (256, 132.9, 37.6),
    (512, 174.5, 44.5),
    (1024, 255.4, 60.8),
    (2048, 421.4, 94.8),
    (4096, 750.6, 194.0),
)
"""Nodes of 12 ranks, seconds to send and unpack 8.3 GB, seconds to the first step: `startup.MEASURED`."""


@pytest.mark.parametrize(("nodes", "sent", "step"), AURORA)
def test_the_ten_public_measurements_are_within_one_and_a_half(nodes: int, sent: float, step: float) -> None:
    broadcast, first_step = startup.broadcast(nodes, 8.3), startup.first_step(nodes * 12)
    for predicted, measured in (
        (broadcast, sent),
        (first_step, step),
        (broadcast + first_step, sent + step),
    ):
        assert 1 / startup.CLOSE <= predicted / measured <= startup.CLOSE


def test_the_range_is_as_wide_as_the_prediction_is_unsure() -> None:
    for curve in startup.curves(64, 8):
        least, most = curve.range_s
        assert least < curve.seconds < most
        assert most / least == pytest.approx(curve.off**2)
    assert startup.spread(startup.curves(9400, 8)[0]).endswith("h")


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
    assert "within 1.5 times" in shown["sure"]
    assert " to " in shown["broadcast"]
