"""Every run file plans on every cluster by changing one word, and is the same plan for everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.errors import fatal
from tests.clusters import EXAMPLES, HOMES, planned

pytestmark = pytest.mark.usefixtures("workspace")

CLUSTERS = ("local", *sorted(HOMES))


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: f"{p.parent.parent.name}/{p.name}")
def test_an_example_plans(path: Path, name: str, tmp_path: Path) -> None:
    plan = planned(path, name, "ada", tmp_path)
    assert fatal(plan.problems) == ()
    assert plan.digest == planned(path, name, "grace", tmp_path).digest
    train = plan.step_named("train")
    assert train is not None
    assert not train.here
    several = train.step.launch.nodes > 1
    assert several == any(v.name == "NCCL_DEBUG" for v in train.around.env)
    queue = plan.cluster.queue_named(train.queue)
    assert queue is None if name == "local" else queue is not None and queue.auto


def test_on_leonardo_nothing_needs_the_network_on_the_booster(tmp_path: Path) -> None:
    (path,) = [p for p in EXAMPLES if p.name == "lora-4gpu.toml"]
    places = {s.name: s.step.place for s in planned(path, "leonardo", "ada", tmp_path).steps}
    assert (places.pop("train"), places.pop("verify")) == ("compute", "compute")
    assert set(places.values()) == {"serial"}
