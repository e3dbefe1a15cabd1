"""The proof that training needs no network stands before it where it has none."""

from __future__ import annotations

import attrs

from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Asset, RunSpec
from hpctrain.model.step import Need
from hpctrain.model.words import Cmd, Join
from hpctrain.plan.planner import make


def test_training_waits_for_it_and_it_for_what_is_fetched(
    run: RunSpec, cluster: Cluster, hooks: Hooks
) -> None:
    plan = make(run, cluster, (), hooks.call)
    found = {s.name: s for s in plan.steps}
    assert found["offline"].here
    assert not found["offline"].waits
    assert [a.step for a in found["offline"].step.after] == ["data"]
    assert "offline" in [a.step for a in found["train"].step.after]
    (command,) = found["offline"].step.commands
    assert isinstance(command, Cmd)
    made = found["data"].step.makes
    assert made is not None
    assert command.argv[-1] == Join("data=file:", made.loc)


def test_where_training_has_the_network_there_is_none(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    login, compute = cluster.place
    online = attrs.evolve(compute, provides=(*compute.provides, Need.NETWORK))
    plan = make(run, attrs.evolve(cluster, place=(login, online)), (), hooks.call)
    assert "offline" not in [s.name for s in plan.steps]


def test_an_asset_does_not_take_the_name_of_a_step(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    run = attrs.evolve(run, assets={**run.assets, "train": Asset(url="http://x/z")})
    (problem,) = make(run, cluster, (), hooks.call).problems
    assert (problem.code, problem.where, problem.fatal) == ("name", "assets.train", True)
