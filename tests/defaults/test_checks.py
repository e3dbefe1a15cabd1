"""What core says about a plan, in the words people will read."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from hpctrain.defaults.limits import queue_text
from hpctrain.errors import Problem
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster, Place, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.run import Asset, Resources, RunSpec, TrainSpec
from hpctrain.model.step import Need, Pin
from hpctrain.model.train import Numbers, Train
from hpctrain.model.words import Loc, Word
from tests.defaults.rig import cluster, plan

HOURS = Duration.parse


class Reads:
    """A trainer that reads the assets it is named."""

    def __init__(self, *names: str) -> None:
        self.names = names

    @hookimpl
    def train_command(self, assets: dict[str, Word]) -> Train:
        return Train(argv=("train", *(assets[n] for n in self.names)))


def site(*queues: Queue, **hardware: object) -> Cluster:
    rows = queues or (
        Queue(name="batch", source="doc", max_nodes=91, max_time=HOURS("2h")),
        Queue(name="batch-large", source="doc", min_nodes=92, max_nodes=183, max_time=HOURS("6h")),
        Queue(name="debug", source="doc", max_nodes=4, max_time=HOURS("30m"), auto=False),
    )
    places = (
        Place(name="login", provides=(Need.NETWORK,), here=True, source="doc"),
        Place(name="compute", provides=(Need.TARGET, Need.GPU), source="doc"),
    )
    facts = {"gpus_per_node": 8, "gpu_kind": "rocm", "nodes": 9000, "memory_gb": 512, **hardware}
    return cluster(*places, arch="x86_64", queues=rows, **facts)


def found(on: Cluster, *, assets: dict[str, Asset] | None = None, **resources: Any) -> dict[str, Problem]:
    spec = RunSpec(
        name="r",
        cluster="toy",
        resources=Resources(**{"time": HOURS("1h"), **resources}),
        train=TrainSpec(use="x"),
        assets=assets or {},
    )
    return {p.code: p for p in plan(spec, on, Reads()).problems}


def test_a_run_within_the_limits_has_no_problem() -> None:
    assert found(site(), nodes=2) == {}


def test_the_time_limit_in_the_words_of_the_mock_up() -> None:
    problem = found(site(), nodes=2, time=HOURS("3h"))["time-limit"]
    assert problem.message == "3h is longer than toy allows for 2 nodes"
    assert problem.where == "resources.time"
    assert problem.notes == (
        "batch, 1-91 nodes: 2h (The toy's page, checked 2026-11-20)",
        "batch-large, 92-183 nodes: 6h (The toy's page, checked 2026-11-20)",
    )
    assert problem.hint == 'time = "2h"      (and total = "3h": 2 jobs of it)'
    assert problem.fatal


class Large:
    """A trainer that says how much there is to compute: 1,000 TFLOP/s for an hour and a half at 30 %."""

    @hookimpl
    def train_command(self) -> Train:
        numbers = Numbers(flops_per_token=1e12, tokens_per_step=1000, steps=1620)
        return Train(argv=("train",), numbers=numbers)


def unfinished(time: str, **hardware: object) -> Problem | None:
    resources = Resources(time=HOURS(time), nodes=2)
    run = RunSpec(name="r", cluster="toy", resources=resources, train=TrainSpec(use="x"))
    problems = plan(run, site(**{"peak_tflops": 62.5, **hardware}), Large()).problems
    return next((p for p in problems if p.code == "unfinished"), None)


def test_what_one_job_cannot_finish_is_said_with_the_jobs_that_it_takes() -> None:
    problem = unfinished("40m")
    assert problem is not None
    assert (
        problem.message == "training takes 1h30m as predicted, and a job has 40m: 3 jobs of 40m, 3 node-hours"
    )
    assert (problem.where, problem.fatal) == ("resources.time", False)


@pytest.mark.parametrize(("time", "peak"), [("2h", 62.5), ("1h30m", 62.5), ("40m", 0)])
def test_what_fits_or_cannot_be_predicted_is_no_problem(time: str, peak: float) -> None:
    assert unfinished(time, peak_tflops=peak) is None


def test_one_node_more_may_take_longer() -> None:
    assert "time-limit" not in found(site(), nodes=92, time=HOURS("6h"))
    refused = found(site(), nodes=91, time=HOURS("6h"))["time-limit"]
    assert refused.fatal
    assert '(and total = "6h": 3 jobs of it)' in refused.hint


def test_a_queue_without_chains_offers_none() -> None:
    row = Queue(name="q", source="doc", max_time=HOURS("1h"), forbids=("chain",))
    assert found(site(row), time=HOURS("3h"))["time-limit"].hint == 'time = "1h"'


def test_a_weak_source_only_warns() -> None:
    row = Queue(name="q", source="doc", max_time=HOURS("1h"), sure=False)
    assert not found(site(row), time=HOURS("3h"))["time-limit"].fatal


def test_the_longer_row_is_taken_when_it_fits() -> None:
    assert "time-limit" not in found(site(), nodes=100, time=HOURS("5h"))


@pytest.mark.parametrize(
    ("row", "asked", "code", "hint"),
    [
        ({"max_nodes": 4}, {"nodes": 5}, "node-limit", "nodes = 4"),
        ({"max_gpus": 16}, {"nodes": 3}, "gpu-limit", "gpus = 16"),
        ({"forbids": ("multi_node",)}, {"nodes": 2}, "queue-forbids", "nodes = 1"),
        ({"min_time": HOURS("2h")}, {"time": HOURS("5m")}, "time-limit", 'time = "2h"'),
        ({"max_node_minutes": 240}, {"nodes": 8}, "node-minutes", 'time = "30m"'),
        ({}, {"nodes": 1, "time": None}, "no-time", '[resources]\ntime = "1h"'),
        ({}, {"memory_gb": 600}, "memory-limit", "memory_gb = 512"),
        ({}, {"nodes": 9001}, "node-limit", "nodes = 9000"),
        ({}, {"queue": "depug"}, "unknown-queue", 'queue = "debug"'),
    ],
)
def test_each_limit(row: dict[str, Any], asked: dict[str, Any], code: str, hint: str) -> None:
    rows = (Queue(name="q", source="doc", **row), Queue(name="debug", source="doc", auto=False))
    problem = found(site(*rows), **asked)[code]
    assert (problem.hint, problem.fatal) == (hint, True)


def test_a_job_that_is_too_short_for_a_row_falls_into_another() -> None:
    long = Queue(name="long", source="doc", min_time=HOURS("2h"))
    short = Queue(name="short", source="doc", max_time=HOURS("2h"))
    for time, queue in (("5m", "short"), ("2h", "long"), ("9h", "long")):
        resources = Resources(time=HOURS(time))
        run = RunSpec(name="r", cluster="toy", resources=resources, train=TrainSpec(use="x"))
        made = plan(run, site(long, short), Reads())
        assert [step.queue for step in made.steps if step.step.trains] == [queue]
        assert made.problems == ()


def test_a_queue_for_nodes_that_people_hold_takes_no_job() -> None:
    rows = (Queue(name="interactive", source="doc", forbids=("batch",)), Queue(name="batch", source="doc"))
    assert found(site(*rows)) == {}  # it is never taken by itself
    problem = found(site(*rows), queue="interactive")["queue-forbids"]
    assert problem.message == "interactive takes no submitted jobs: its nodes are held by hand"
    assert problem.hint == "hpctrain run --here      (inside nodes of it that you hold)"


def test_a_named_queue_is_judged_by_its_own_limits() -> None:
    assert found(site(), queue="debug", nodes=8, time=HOURS("20m"))["node-limit"].hint == "nodes = 4"


@pytest.mark.parametrize(
    ("row", "expect"),
    [
        ({"max_nodes": 1}, "q, 1 node: any time"),
        ({"min_nodes": 2}, "q, 2 nodes or more: any time"),
        ({"max_nodes": 4, "max_gpus": 8, "max_time": HOURS("1h")}, "q, 1-4 nodes: 1h, 8 GPUs"),
        ({"max_nodes": 4, "forbids": ("chain",)}, "q, 1-4 nodes: any time, no chain"),
        ({"min_time": HOURS("2h")}, "q, 1 node or more: any time, at least 2h"),
    ],
)
def test_a_row_in_words(row: dict[str, Any], expect: str) -> None:
    queue = Queue(name="q", source="doc", **row)
    assert queue_text(site(), queue) == f"{expect} (The toy's page, checked 2026-11-20)"


def test_this_computer_takes_any_run_and_says_what_it_ignores() -> None:
    problems = found(cluster(), nodes=4, queue="debug")
    assert problems["one-node"].message == "toy is one computer; 1 node is used where 4 were asked for"
    assert problems["no-queues"].message == "toy has no queues; debug has no effect here"
    assert not any(p.fatal for p in problems.values())


def test_an_account_is_asked_for_but_stops_no_plan() -> None:
    on = site()
    on = attrs.evolve(on, policy=attrs.evolve(on.policy, account="required"))
    assert not found(on)["account"].fatal
    assert "account" not in found(on, account="GEN150")


def test_moving_names_are_named_once() -> None:
    assets = {
        "model": Asset(hub="org/m"),
        "code": Asset(git="https://x/y"),
        "again": Asset(git="https://x/y"),
    }
    problem = found(site(), assets=assets)["not-pinned"]
    assert problem.message == "not pinned: https://x/y, org/m"
    assert not problem.fatal


def test_fixed_names_need_no_pin() -> None:
    assets = {
        "model": Asset(hub="org/m", revision="a" * 40),
        "code": Asset(git="https://x/y", rev="b" * 40),
        "data": Asset(url="https://x/z", sha256="c" * 64),
    }
    assert "not-pinned" not in found(site(), assets=assets)


def test_pinned_names_are_pinned() -> None:
    spec = RunSpec(name="r", cluster="toy", assets={"model": Asset(hub="org/m")})
    pins = (Pin("org/m@main", "hub", "a" * 40), Pin("native", "platform", "x86_64"))
    assert {p.code for p in plan(spec, cluster(), pins=pins).problems} == set()


def test_an_asset_that_nothing_reads() -> None:
    assets = {name: Asset(url=f"https://x/{name}", sha256="c" * 63 + name) for name in "ab"}
    spec = RunSpec(
        name="r",
        cluster="toy",
        assets=assets,
        train=TrainSpec(use="x"),
        resources=Resources(time=HOURS("1h")),
    )
    unused = [p.where for p in plan(spec, site(), Reads("a")).problems if p.code == "unused-asset"]
    assert unused == ["assets.b"]


class Writes:
    """A site hook that sets a variable to a place below a storage role."""

    def __init__(self, role: str) -> None:
        self.role = role

    @hookimpl
    def surround(self) -> Layer:
        return Layer(env=(EnvVar(name="CACHE", value=Loc(self.role, "x"), why="a test"),))


def test_a_role_that_the_cluster_lacks() -> None:
    def said(role: str) -> list[tuple[str, str, bool]]:
        spec = RunSpec(
            name="r", cluster="toy", train=TrainSpec(use="x"), resources=Resources(time=HOURS("1h"))
        )
        found = plan(spec, site(), Reads(), Writes(role)).problems
        return [(p.message, p.hint, p.fatal) for p in found if p.code == "role"]

    assert said("assets") == said("runfile") == []
    assert said("asets") == [('toy has no storage role "asets"', 'Loc("assets")', True)]


def test_the_key_that_was_said_is_named() -> None:
    problem = found(site(nodes=1, gpus_per_node=0), gpus=4)["one-node"]
    assert problem.message == "toy is one computer; 1 node is used where 4 GPUs were asked for"
    assert problem.where == "resources.gpus"
    problem = found(site(nodes=2), gpus=32)["node-limit"]
    assert (problem.message, problem.hint) == ("32 GPUs, 4 nodes exceed what toy has", "gpus = 16")


def test_the_queue_is_named_when_the_user_named_it() -> None:
    problem = found(site(), nodes=1, queue="debug")["time-limit"]
    assert problem.message == "1h is longer than the queue debug of toy allows for 1 node"
