"""From a run to placed steps with folded layers and one digest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.marker import hookimpl
from hpctrain.hooks.scan import Entry
from hpctrain.model.cluster import Cluster, Modules
from hpctrain.model.duration import Duration
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.run import Resources, RunSpec
from hpctrain.model.step import Need, Pin, Step
from hpctrain.model.words import Cmd
from hpctrain.plan.explain import explain
from hpctrain.plan.planner import make
from hpctrain.plan.queues import choose


def test_steps_run_where_their_needs_are_met(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    plan = make(run, cluster, (), hooks.call)
    assert [(s.name, s.step.place, s.here) for s in plan.steps] == [
        ("wheels", "login", True),
        ("env", "compute", False),
        ("data", "login", True),
        ("offline", "login", True),
        ("train", "compute", False),
    ]
    assert [a.step for a in plan.steps[-1].step.after] == ["wheels", "env", "data", "offline"]
    assert not plan.problems


def test_modules_of_a_place_are_loaded_before_those_of_the_site(
    run: RunSpec, cluster: Cluster, hooks: Hooks
) -> None:
    """`[modules]` is for steps that need the nodes' system; a download on a login node may need a Python."""
    login, compute = cluster.place
    places = (attrs.evolve(login, modules=("python/3.12",)), attrs.evolve(compute, modules=("stack",)))
    cluster = attrs.evolve(
        cluster, place=places, modules=Modules(source="doc", run=("gcc",), build=("cmake",))
    )
    plan = make(run, cluster, (), hooks.call)
    assert {s.name: [m.name for m in s.around.modules] for s in plan.steps} == {
        "wheels": ["python/3.12"],
        "env": ["stack", "cmake"],
        "data": ["python/3.12"],
        "offline": ["python/3.12"],
        "train": ["stack", "gcc"],
    }


def test_a_login_step_behind_a_job_waits(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    @hookimpl
    def convert_checkpoint() -> list[Step]:
        return [Step(name="upload", commands=(Cmd.of("up"),), needs=frozenset({Need.NETWORK}))]

    hooks.add(Entry("hooks", "up", "m", "d", "1"), SimpleNamespace(convert_checkpoint=convert_checkpoint))
    from hpctrain.model.train import Layout, Train

    @hookimpl(tryfirst=True)
    def train_command() -> Train:
        return Train(argv=("t",), checkpoints=Layout(format="neox"))

    hooks.add(Entry("hooks", "t", "m", "d", "1"), SimpleNamespace(train_command=train_command))
    run = attrs.evolve(run, checkpoint=attrs.evolve(run.checkpoint, export="hf"))
    assert make(run, cluster, (), hooks.call).steps[-1].waits


def test_a_step_that_fits_nowhere_names_every_place(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    @hookimpl
    def build_env() -> list[Step]:
        return [Step(name="overlay", commands=(), needs=frozenset({Need.NETWORK, Need.TARGET}))]

    hooks.add(Entry("hooks", "x", "m", "d", "1"), SimpleNamespace(build_env=build_env))
    (problem,) = make(run, cluster, (), hooks.call).problems
    assert problem.message == "step overlay needs network and target libraries in one place for 10 minutes"
    assert problem.notes == ("toy: login has network", "toy: compute has target libraries, GPUs")


def test_network_facts_depend_on_the_node_count(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    def names(nodes: int) -> set[str]:
        one = attrs.evolve(run, resources=attrs.evolve(run.resources, nodes=nodes))
        return {v.name for v in make(one, cluster, (), hooks.call).steps[-1].around.env}

    assert names(2) - names(1) == {"NCCL_NET"}


def test_a_site_hook_overrides_a_fact_and_the_user_overrides_both(
    run: RunSpec, cluster: Cluster, hooks: Hooks
) -> None:
    @hookimpl
    def configure_network() -> Layer:
        return Layer(env=(EnvVar(name="NCCL_NET", value="Socket", why="the fabric is being mended"),))

    hooks.add(Entry("hooks", "acme", "m", "acme", "1"), SimpleNamespace(configure_network=configure_network))
    plan = make(run, cluster, (), hooks.call)
    (entry,) = explain(plan, "NCCL_NET")
    assert [(v["value"], v["source"]) for v in entry["in_force"]] == [("Socket", "hooks:acme")]
    assert entry["lost"][0]["fact"]["checked"] == "2026-11-20"
    mine = make(attrs.evolve(run, env={"NCCL_NET": "mine"}), cluster, (), hooks.call)
    assert explain(mine, "NCCL_NET")[0]["in_force"][0]["source"] == "run file"
    assert len(explain(mine, "NCCL_NET")[0]["lost"]) == 2


def test_a_fact_that_the_environment_decides_itself_says_so(
    run: RunSpec, cluster: Cluster, hooks: Hooks
) -> None:
    def because(nodes: int, *unless: str) -> str:
        rows = tuple(attrs.evolve(row, unless=unless) for row in cluster.network.var)
        there = attrs.evolve(cluster, network=attrs.evolve(cluster.network, var=rows))
        asked = attrs.evolve(run, resources=attrs.evolve(run.resources, nodes=nodes))
        (entry,) = explain(make(asked, there, (), hooks.call), "NCCL_NET")
        return str(dict(entry["rows"])["because"])

    use = run.environment.use
    assert because(2, use) == f"the environment technology {use} decides it itself"
    assert because(1) == "it is for several nodes; this run trains on 1"


def test_two_plugins_that_disagree_are_a_conflict(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    for name, value in (("acme", "Socket"), ("bolt", "AWS Libfabric")):

        def configure_network(value: str = value) -> Layer:
            return Layer(env=(EnvVar(name="NCCL_NET", value=value, why="x"),))

        plugin = SimpleNamespace(configure_network=hookimpl(configure_network))
        hooks.add(Entry("hooks", name, "m", name, "1"), plugin)
    (problem,) = make(run, cluster, (), hooks.call).problems
    assert problem.code == "conflict"
    assert problem.notes == ('"Socket"          hooks:acme', '"AWS Libfabric"   hooks:bolt')


def test_the_digest_knows_what_runs_and_not_for_whom(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    def digest(**changes: Any) -> str:
        return make(attrs.evolve(run, **changes), cluster, (), hooks.call).digest

    same = attrs.evolve(run.resources, account="GEN150")
    assert digest() == digest(resources=same)
    assert digest() != digest(env={"A": "1"})
    assert digest() != digest(resources=Resources(nodes=1, time=Duration.parse("1h")))
    pins = ((), (Pin("trl", "pypi", "1.16.0"),))
    plans = [make(run, cluster, those, hooks.call) for those in pins]
    made = [step.step.makes for plan in plans for step in plan.steps if step.name == "env"]
    assert len({plan.digest for plan in plans}) == 2
    assert len({artifact.key for artifact in made if artifact}) == 2


@pytest.mark.parametrize(
    ("nodes", "time", "wanted", "row"),
    [
        (1, "1h", "", "short"),
        (2, "1h", "", "short"),
        (2, "3h", "", "long"),
        (3, "1h", "", "long"),
        (1, "3h", "", "short"),
        (1, "10m", "debug", "debug"),
        (1, "10m", "nope", None),
    ],
)
def test_the_queue_follows_nodes_and_time(
    cluster: Cluster, nodes: int, time: str, wanted: str, row: str | None
) -> None:
    found = choose(cluster, nodes, Duration.parse(time), wanted)
    assert (found.name if found else None) == row
