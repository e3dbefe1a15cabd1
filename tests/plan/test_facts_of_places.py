"""What facts say of places, accounts and GPUs: who pays, who may write, what is loaded, in which order."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster, Modules, Storage
from hpctrain.model.layer import Layer, Module
from hpctrain.model.plan import Plan
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Launch, Need, Step
from hpctrain.plan import fact_layers, planner


def planned(run: RunSpec, cluster: Cluster, hooks: Hooks) -> Plan:
    return planner.make(run, cluster, (), hooks.call)


@pytest.mark.parametrize(
    ("account", "project", "at_login", "at_compute"),
    [
        ("m1234_g", "m1234", "m1234", "m1234_g"),
        ("m1234", "m1234", "m1234", "m1234_g"),
        ("other", "other", "other", "other_g"),
        ("", "", "", ""),
    ],
)
def test_jobs_of_a_place_are_charged_as_it_says(
    cluster: Cluster, account: str, project: str, at_login: str, at_compute: str
) -> None:
    login, compute = cluster.place
    cluster = attrs.evolve(
        cluster,
        policy=attrs.evolve(cluster.policy, project="(m[0-9]+)(?:_g)?"),
        place=(attrs.evolve(login, account="{project}"), attrs.evolve(compute, account="{project}_g")),
    )
    assert cluster.project_of(account) == project
    assert cluster.account_at("login", account) == at_login
    assert cluster.account_at("compute", account) == at_compute


def test_a_place_that_says_nothing_charges_the_runs_account(cluster: Cluster) -> None:
    assert cluster.account_at("compute", "gen150") == "gen150"
    assert cluster.project_of("gen150") == "gen150"


def test_a_step_runs_where_its_result_may_be_kept(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    """The environment needs the target's libraries, which compute nodes have; they may not write there."""
    first = {s.name: s.step.place for s in planned(run, cluster, hooks).steps}
    assert first["env"] == "compute"
    login = attrs.evolve(cluster.place[0], provides=(Need.NETWORK, Need.TARGET))
    env = Storage(path="/global/common/software", source="doc", writable=("login",))
    cluster = attrs.evolve(cluster, place=(cluster.place[1], login), storage={**cluster.storage, "env": env})
    plan = planned(run, cluster, hooks)
    assert {s.name: s.step.place for s in plan.steps}["env"] == "login"
    assert plan.step_named("train").step.place == "compute"  # type: ignore[union-attr]


def test_a_result_that_no_place_may_keep_is_told_with_the_path(
    run: RunSpec, cluster: Cluster, hooks: Hooks
) -> None:
    env = Storage(path="/global/common/software", source="doc", writable=("login",))
    cluster = attrs.evolve(cluster, storage={**cluster.storage, "env": env})
    (problem,) = (p for p in planned(run, cluster, hooks).problems if p.code == "no-place")
    assert problem.message.startswith("step env needs target libraries")
    assert "toy: compute cannot write to env (/global/common/software)" in problem.notes


@pytest.mark.parametrize(
    ("technology", "inside", "loaded"),
    [("venv", True, True), ("edf", True, False), ("edf", False, True), ("", False, True)],
)
def test_modules_are_not_loaded_for_a_container_that_ignores_them(
    run: RunSpec, cluster: Cluster, technology: str, inside: bool, loaded: bool
) -> None:
    run = attrs.evolve(run, environment=attrs.evolve(run.environment, use=technology))
    cluster = attrs.evolve(
        cluster,
        modules=Modules(source="doc", run=("gcc",), unless=("edf",)),
        network=attrs.evolve(cluster.network, modules=("nccl",)),
    )
    launch = Launch(nodes=2, gpus_per_node=4)
    train = Step(
        name="train", commands=(), needs=frozenset({Need.TARGET}), inside=inside, launch=launch, trains=True
    )
    layers = (
        fact_layers.cluster_layer(cluster, train, technology),
        fact_layers.training_layer(cluster, train, run),
    )
    modules = [module for layer in layers for module in layer.modules]
    assert modules == ([Module.parse("gcc"), Module.parse("nccl")] if loaded else [])


def gpu_layer(cluster: Cluster, gpus: int, **changes: Any) -> Layer:
    cluster = attrs.evolve(
        cluster,
        launch=attrs.evolve(cluster.launch, gpu_order=changes.get("order", "reversed")),
        hardware=attrs.evolve(cluster.hardware, gpu_kind=changes.get("kind", "cuda")),
    )
    step = Step(
        name="train",
        commands=(),
        needs=frozenset({Need.TARGET}),
        launch=Launch(gpus_per_node=gpus),
        trains=changes.get("trains", True),
    )
    return fact_layers.cluster_layer(cluster, step, "venv")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("cuda", "CUDA_VISIBLE_DEVICES"), ("rocm", "ROCR_VISIBLE_DEVICES"), ("xpu", "ZE_AFFINITY_MASK")],
)
def test_the_last_gpu_comes_first_where_the_first_cores_are_nearest_to_it(
    cluster: Cluster, kind: str, name: str
) -> None:
    (variable,) = gpu_layer(cluster, 4, kind=kind).env
    assert (variable.name, variable.value) == (name, "3,2,1,0")
    assert variable.fact == "doc"


@pytest.mark.parametrize(
    ("gpus", "changes"), [(4, {"order": "forward"}), (1, {}), (4, {"trains": False}), (4, {"kind": "cpu"})]
)
def test_gpus_are_left_in_their_order(cluster: Cluster, gpus: int, changes: dict[str, Any]) -> None:
    assert gpu_layer(cluster, gpus, **changes).env == ()


def test_variables_of_shared_paths_go_to_the_job(cluster: Cluster) -> None:
    cluster = attrs.evolve(
        cluster,
        policy=attrs.evolve(cluster.policy, submit_env=("http_proxy", "PSCRATCH")),
        storage={
            "runs": Storage(path="${PSCRATCH}/runs", source="doc"),
            "env": Storage(path="${CFS}/{project}/${PSCRATCH}", source="doc"),
            "local": Storage(path="${TMPDIR}/x", source="doc", node_local=True),
        },
    )
    assert cluster.exported == ("http_proxy", "PSCRATCH", "CFS")


def test_the_plan_knows_who_pays_for_each_step(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    run = attrs.evolve(run, resources=attrs.evolve(run.resources, account="m1"))
    login, compute = cluster.place
    cluster = attrs.evolve(cluster, place=(login, attrs.evolve(compute, account="{account}_g")))
    plan = planned(run, cluster, hooks)
    assert {s.name: plan.account_of(s) for s in plan.steps if not s.here} == {"env": "m1_g", "train": "m1_g"}
