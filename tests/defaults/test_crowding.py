"""What is queued already, against limits on jobs of a user and of a project, and a project's caps."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from hpctrain.defaults import crowding
from hpctrain.model.cluster import Queue
from hpctrain.model.job import JobState, State
from hpctrain.model.plan import Survey
from hpctrain.model.run import Resources, RunSpec, TrainSpec
from tests.defaults.rig import plan
from tests.defaults.test_checks import Reads, site


def test_the_jobs_of_a_user_are_counted_in_their_queue() -> None:
    row = Queue(name="q", source="doc", jobs_per_user=1, ask={"local": ("--qos=q",)})
    made = plan(RunSpec(name="r", cluster="toy", train=TrainSpec(use="x")), site(row), Reads())
    mine = JobState(id="7", state=State.QUEUED, queue_options=("--partition=p", "--qos=q"))
    for jobs, refused in (((), False), ((mine,), True), ((attrs.evolve(mine, queue_options=()),), False),
                          ((attrs.evolve(mine, state=State.DONE),), False)):  # fmt: skip
        told = list(crowding.crowded(made, Survey(is_on_cluster=True, jobs=jobs)))
        assert [p.fatal for p in told] == [True] * refused
        assert all(
            "q holds at most 1 of a user's jobs at a time; you have 1 there" in p.message for p in told
        )
    weak = site(attrs.evolve(row, sure=False))
    made = plan(RunSpec(name="r", cluster="toy", train=TrainSpec(use="x")), weak, Reads())
    assert [p.fatal for p in crowding.crowded(made, Survey(is_on_cluster=True, jobs=(mine,)))] == [False]


def test_a_projects_cap_counts_the_jobs_of_all_its_users() -> None:
    toy = site(Queue(name="q", source="doc"))
    toy = attrs.evolve(toy, policy=attrs.evolve(toy.policy, max_gpus=64, max_nodes=6))
    run = RunSpec(name="r", cluster="toy", resources=Resources(nodes=2), train=TrainSpec(use="x"))
    made = plan(run, toy, Reads())
    ada = JobState(id="1", state=State.RUNNING, user="ada", node_count=2, gpus=4)
    bob = JobState(id="2", state=State.QUEUED, user="bob", node_count=1)
    over = attrs.evolve(ada, state=State.DONE)
    new = made.steps[-1].step.launch
    each = toy.hardware.gpus_per_node
    assert (new.nodes, new.gpus_per_node) == (2, each)

    def told(*jobs: JobState) -> list[str]:
        return [p.code for p in crowding.capped(made, Survey(is_on_cluster=True, project=jobs))]

    assert told() == told(over, over, over) == []
    assert told(bob, bob, bob, bob) == []
    (problem,) = crowding.capped(made, Survey(is_on_cluster=True, project=(ada, ada, bob)))
    assert problem.code == "node-limit"
    assert problem.fatal
    assert problem.message == "a project may hold 6 nodes on toy: 5 are held or queued, and the run adds 2"
    assert problem.notes == ("jobs of ada (2), bob (1) (The toy's page, checked 2026-11-20)",)
    assert problem.hint == "nodes = 1"
    assert told(*[attrs.evolve(ada, gpus=64, node_count=0)]) == ["gpu-limit"]


@pytest.mark.parametrize(
    ("row", "answered", "counted"),
    [
        ({"ask": {"local": ("--constraint=gpu", "--qos=debug")}}, ("--partition=p", "--qos=debug"), True),
        ({"ask": {"local": ("--constraint=gpu", "--qos=debug")}}, ("--partition=p", "--qos=other"), False),
        ({"ask": {"local": ("--constraint=gpu",)}}, ("--partition=p", "--qos=debug"), False),
        ({"ask": {"local": ("-q debug",)}}, ("-q debug",), True),
        ({"ask": {"local": ("-q prod",)}, "counts": ("-q small",)}, ("-q small",), True),
        ({"ask": {"local": ("-q prod",)}, "counts": ("-q small",)}, ("-q prod",), False),
        ({}, ("--partition=anything",), True),
    ],
)
def test_jobs_are_told_apart_by_the_words_that_the_scheduler_answers(
    row: dict[str, Any], answered: tuple[str, ...], counted: bool
) -> None:
    queue = Queue(name="q", source="doc", jobs_per_user=1, **row)
    made = plan(RunSpec(name="r", cluster="toy", train=TrainSpec(use="x")), site(queue), Reads())
    job = JobState(id="7", state=State.QUEUED, queue_options=answered)
    told = list(crowding.crowded(made, Survey(is_on_cluster=True, jobs=(job,))))
    assert [p.code for p in told] == ["jobs-per-user"] * counted


def test_the_jobs_of_a_project_are_counted_in_their_queue() -> None:
    queue = Queue(name="q", source="doc", jobs_per_project=2, ask={"local": ("--qos=q",)})
    made = plan(RunSpec(name="r", cluster="toy", train=TrainSpec(use="x")), site(queue), Reads())
    ada = JobState(id="7", state=State.RUNNING, user="ada", queue_options=("--partition=p", "--qos=q"))
    bob = attrs.evolve(ada, id="8", user="bob")
    assert not list(crowding.crowded(made, Survey(is_on_cluster=True, project=(ada,))))
    (problem,) = crowding.crowded(made, Survey(is_on_cluster=True, project=(ada, bob)))
    assert problem.code == "jobs-per-project"
    assert problem.message == (
        "q holds at most 2 of a project's jobs at a time; its users have 2 there, and the run adds 1"
    )
