"""The prediction of start-up: its shape, its choice, and the page that shows its inputs."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from hpctrain.cli.show.plan_numbers import startup as numbers
from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.plan import startup
from hpctrain.plan.explain import explain
from hpctrain.plan.planner import make
from hpctrain.session import Session

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

PACKED = '[environment]\npackages = ["numpy"]\n[environment.conda]\npack = '
MANY = """
[resources]
nodes = 128
time = "1h"
[train]
use = "command"
[train.command]
argv = ["python", "train.py"]
"""


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
    assert shown["this plan"] == "shared: a prefix on the shared file system"
    assert "10,400 paths a node" in shown["files"]
    assert all("9,400: " in shown[f"{way} by nodes"] for way in startup.MEANS)
    assert "within 1.5 times" in shown["sure"]
    assert " to " in shown["broadcast"]


@pytest.mark.parametrize(
    ("cluster", "environment", "expected"),
    [
        ("alps", "", "one image, mounted from there"),
        ("olivia", "", "one image, mounted from there"),
        ("alps", '[environment]\nuse = "venv"\n', "a prefix on the shared file system, 9.93 M operations"),
        ("alps", '[environment.edf]\nimage = "/capstor/mine.sqsh"\n', "one image, mounted from there"),
        ("frontier", f"{PACKED}true\n", "one archive, sent to each node's own disk"),
        ("frontier", f"{PACKED}false\n", "a prefix on the shared file system"),
    ],
)
def test_a_plan_predicts_the_way_that_it_takes(
    cluster: str, environment: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f'name = "many"\ncluster = "{cluster}"\n{environment}{MANY}')
    row = numbers(Session(file, environ={"HOME": str(tmp_path), "USER": "ada"}).plan())
    assert row
    assert f"from {expected}" in row
