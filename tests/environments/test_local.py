"""The cluster that every computer has."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import attrs
import pytest

from hpctrain.model.duration import Duration
from hpctrain.model.run import Environment, Package, Resources, RunSpec, TrainSpec
from hpctrain.model.step import Need
from hpctrain.runfile.facts import load_facts
from hpctrain_plugins.environments import venv
from tests.defaults.rig import plan
from tests.defaults.test_checks import Reads

FOLDER = Path(str(resources.files("hpctrain_plugins.local")))


@pytest.fixture(scope="module")
def local():  # type: ignore[no-untyped-def]
    return load_facts(FOLDER).cluster


def test_its_facts_hold_for_every_computer(local) -> None:  # type: ignore[no-untyped-def]
    assert (local.scheduler, local.arch, local.hardware.gpus_per_node, local.queue) == (
        "local",
        "native",
        0,
        (),
    )
    used = {getattr(local, field.name).source for field in attrs.fields(type(local)) if field.name in TABLES}
    assert used <= {s.id for s in local.source}


TABLES = ("hardware", "launch", "network", "policy")


def test_a_run_for_a_supercomputer_is_planned_here(local) -> None:  # type: ignore[no-untyped-def]
    spec = RunSpec(
        name="r",
        cluster="local",
        resources=Resources(gpus=16, time=Duration.parse("90m"), account="GEN150"),
        environment=Environment(use="venv", packages=(Package.parse("six"),)),
        train=TrainSpec(use="x"),
    )
    made = plan(spec, local, venv, Reads())
    assert [(s.name, s.step.place, s.here) for s in made.steps] == [
        ("env", "here", True),
        ("train", "job", False),
    ]
    assert not any(p.fatal for p in made.problems)
    launch = made.steps[-1].step.launch
    assert (launch.nodes, launch.world, launch.cpus_per_rank) == (1, 1, 1)


def test_what_prepares_a_run_is_in_front_of_the_user(local) -> None:  # type: ignore[no-untyped-def]
    assert set(local.place_named("here").provides) == {Need.NETWORK, Need.TARGET}
    assert local.place_named("here").here
