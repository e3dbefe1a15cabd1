"""`[resources] total`: how many jobs of how long, and where a chain is refused."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from hpctrain.cli.show import plan_text
from hpctrain.errors import Problem
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster, Place, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.plan import EarlierRun, Plan, Survey
from hpctrain.model.run import Checkpoint, Resources, RunSpec, TrainSpec
from hpctrain.model.step import Need
from hpctrain.model.train import Layout, Train
from hpctrain.plan import chain, interval, predict
from tests.defaults.rig import cluster
from tests.defaults.rig import plan as planned

HOURS = Duration.parse
ASSUMED = (
    "as often as the trainer says; 19h59m recommended for 1m a save (assumed) and one fault in 500d (assumed)"
)
JOBS = Place(name="compute", provides=tuple(Need), source="doc")
ROW: dict[str, Any] = {"name": "q", "source": "doc", "max_time": HOURS("24h")}


class Trainer:
    """A trainer with checkpoints."""

    def __init__(self, layout: Layout | None = Layout(format="hf")) -> None:  # noqa: B008
        self.layout = layout

    @hookimpl
    def train_command(self) -> Train:
        return Train(argv=("train",), checkpoints=self.layout)


def site(*rows: Queue, **hardware: Any) -> Cluster:
    return cluster(JOBS, queues=rows or (Queue(**ROW),), **{"nodes": 100, **hardware})


def made(on: Cluster, trainer: Trainer | None = None, resume: str = "auto", **asked: Any) -> Plan:
    times: dict[str, Any] = {k: HOURS(v) if k in ("time", "total") else v for k, v in asked.items()}
    resources = Resources(**{"nodes": 2, **times})
    run = RunSpec(
        name="r",
        cluster="toy",
        resources=resources,
        train=TrainSpec(use="x"),
        checkpoint=Checkpoint(resume=resume),
    )
    return planned(run, on, trainer or Trainer())


def problem(plan: Plan, code: str) -> Problem:
    (found,) = [p for p in plan.problems if p.code == code]
    return found


@pytest.mark.parametrize(
    ("asked", "attempts", "time"),
    [
        ({"total": "10d"}, 10, "1d"),
        ({"total": "10d", "time": "6h"}, 40, "6h"),
        ({"total": "25h"}, 2, "1d"),
        ({"total": "10d", "nodes": 8}, 20, "12h"),
    ],
)
def test_jobs_of_the_queues_longest_time_or_of_the_time_asked_for(
    asked: dict[str, Any], attempts: int, time: str
) -> None:
    on = site(Queue(**ROW, max_node_minutes=8 * 12 * 60))
    links = chain.of(made(on, **asked))
    assert links is not None
    assert (links.attempts, links.time.short, links.links) == (attempts, time, attempts + 1)
    assert [p for p in made(on, **asked).problems if p.fatal] == []


def test_a_limit_on_jobs_of_a_user_is_kept_by_the_chain() -> None:
    links = chain.of(made(site(Queue(**ROW, jobs_per_user=4)), total="10d"))
    assert links is not None
    assert (links.attempts, links.links) == (10, 4)


def test_a_cap_over_a_projects_jobs_is_kept_by_the_chain() -> None:
    on = site(gpus_per_node=4)
    for gpus, nodes, count in ((32, None, 4), (None, 7, 3), (None, 1, 1)):
        policy = attrs.evolve(on.policy, max_gpus=gpus, max_nodes=nodes)
        capped = attrs.evolve(on, policy=policy)
        links = chain.of(made(capped, total="10d"))
        assert links is not None
        assert links.links == count


@pytest.mark.parametrize("asked", [{}, {"time": "5h"}, {"total": "20h"}, {"total": "5h", "time": "5h"}])
def test_what_one_job_does_is_no_chain(asked: dict[str, Any]) -> None:
    plan = made(site(), **asked)
    assert chain.of(plan) is None
    if "total" in asked:
        assert plan.run.resources.time == HOURS(asked["total"])


def test_the_plan_says_jobs_and_node_hours() -> None:
    plan = made(site(), total="10d")
    assert plan_text.size_of(plan) == "2 nodes, 10d in 10 jobs of 1d, 480 node-hours"
    assert plan_text.footer(plan, Survey(is_on_cluster=True)) == [
        "10 jobs, at most 480 node-hours",
        "attempts: all 10 and a spare are handed over at once",
        f"checkpoints: {ASSUMED}",
    ]


def test_the_plan_says_who_hands_over_what_the_queue_does_not_take_at_once() -> None:
    def attempts(**limits: Any) -> str:
        plan = made(site(Queue(**ROW, **limits)), total="10d")
        return next(
            line
            for line in plan_text.footer(plan, Survey(is_on_cluster=True))
            if line.startswith("attempts: ")
        )

    assert attempts(jobs_per_user=4) == (
        "attempts: 4 of 10 are handed over at once, 6 to come by the jobs themselves as they begin "
        "(assumed: no page of toy forbids a job to submit another)"
    )
    one = "attempts: 1 of 10 are handed over at once, 9 to come, each by hpctrain continue"
    assert attempts(jobs_per_user=1) == one, "the one that runs takes the only place"


def test_one_job_that_is_queued_again_takes_one_place() -> None:
    plan = made(site(Queue(**ROW, forbids=("submit",))), total="10d", requeue=True)
    links = chain.of(plan)
    assert links is not None
    assert (links.links, links.attempts, links.hands_over) == (1, 10, False)
    line = "attempts: one job, which is queued again until all 10 are done"
    assert line in plan_text.footer(plan, Survey(is_on_cluster=True))
    assert [p for p in plan.problems if p.fatal] == []


def test_a_queue_whose_jobs_submit_no_others_takes_what_fits_at_once_and_refuses_more() -> None:
    on = site(Queue(**ROW, jobs_per_user=4, forbids=("submit",)))
    refused = problem(made(on, total="10d"), "queue-forbids")
    assert refused.fatal
    assert (
        refused.message == "q of toy forbids a job to submit another, takes 4 of a user, and total takes 10"
    )
    assert refused.hint == 'total = "4d"      (hpctrain continue adds to it), or another queue'
    for total in ("3d", "4d"):
        plan = made(on, total=total)
        assert [p for p in plan.problems if p.fatal] == []
        assert not chain.of(plan).hands_over  # type: ignore[union-attr]


def test_an_earlier_run_is_measured_and_saving_is_recommended_by_it() -> None:
    earlier = EarlierRun(title="r/1", finished=False, step=5, save_s=10.0, between_faults_s=8000.0)
    plan = attrs.evolve(made(site(), total="10d"))
    advice = interval.advice(plan, earlier)
    assert advice is not None
    assert 360 < advice.every_s < 400, "Young: the root of 2 * 10 * 8,000 is 400"
    assert plan_text.footer(plan, Survey(is_on_cluster=True, earlier=earlier))[-1] == (
        "checkpoints: as often as the trainer says; 6m33s recommended for 10s a save (measured) "
        "and one fault in 2h13m (measured)"
    )
    assert interval.advice(made(site(), time="5h"), earlier) is None


@pytest.mark.parametrize(("save", "between"), [(1, 100), (60, 5000), (600, 80000), (100, 300)])
def test_the_interval_is_the_best_of_all(save: float, between: float) -> None:
    """The share of time lost to saving and to faults, by Daly's exact model, is least there."""

    def lost(every: float) -> float:
        return (math.exp((every + save) / between) - 1) * between / every

    best = interval.best(save, between)
    assert all(lost(best) <= lost(best * factor) * 1.001 for factor in (0.3, 0.6, 0.8, 1.25, 1.6, 3))


def test_a_queue_that_forbids_chains_refuses_with_its_row() -> None:
    refused = problem(made(site(Queue(**ROW, forbids=("chain",))), total="3d"), "queue-forbids")
    assert refused.fatal
    assert refused.message == "q of toy forbids jobs that follow each other, and total takes 3"
    assert refused.notes == ("q, 1 node or more: 1d, no chain (The toy's page, checked 2026-11-20)",)
    assert refused.where == "resources.total"
    assert refused.hint.startswith('time = "1d"')


def test_a_total_shorter_than_one_job_is_a_slip() -> None:
    refused = problem(made(site(), total="1h", time="5h"), "short-total")
    assert (refused.fatal, refused.where) == (True, "resources.total")


def test_another_queue_with_longer_jobs_is_said() -> None:
    short = Queue(**{**ROW, "name": "short", "max_time": HOURS("2h"), "max_nodes": 91})
    long = {
        **ROW,
        "name": "long",
        "max_time": HOURS("1d"),
        "max_nodes": 64,
        "auto": False,
        "note": "one running job",
    }
    said = problem(made(site(short, Queue(**long)), nodes=64, total="10d"), "longer-jobs")
    assert said.message == "total takes 120 jobs of 2h in short, and 10 jobs of 1d in long"
    assert (said.fatal, said.where) == (False, "resources.total")
    assert said.hint.startswith('queue = "long"')
    assert "one running job" in said.notes
    usual = {**long, "name": "usual", "max_time": HOURS("12h"), "auto": True}
    for_all = problem(made(site(short, Queue(**long), Queue(**usual)), nodes=64, total="10d"), "longer-jobs")
    assert for_all.hint == 'time = "12h"', "a queue that everybody may use comes first"
    whole = problem(made(site(short, Queue(**usual)), nodes=64, total="6h"), "longer-jobs")
    assert whole.message.endswith("and 1 job of 6h in usual"), "no job is longer than the whole"
    for row, asked in (
        (long, {"nodes": 65}),
        (long, {"nodes": 64, "queue": "short"}),
        ({**long, "forbids": ("chain",)}, {"nodes": 64}),
    ):
        quiet = made(site(short, Queue(**row)), total="10d", **asked)
        assert "longer-jobs" not in [p.code for p in quiet.problems]


def test_jobs_that_would_start_anew_are_refused_or_said() -> None:
    never = problem(made(site(), resume="never", total="3d"), "chain-anew")
    assert (never.fatal, never.where) == (True, "checkpoint.resume")
    unknown = problem(made(site(), Trainer(None), total="3d"), "chain-anew")
    assert (unknown.fatal, unknown.where) == (False, "resources.total")


def test_the_digest_of_a_run_without_total_is_as_before_it_was_known() -> None:
    plain, chained = made(site(), time="5h"), made(site(), time="5h", total="10h")
    assert plain.digest != chained.digest
    from hpctrain.plan.encode import EXPLAINS, encode

    assert "total" not in encode(plain.run, EXPLAINS)["resources"]
    assert encode(chained.run)["resources"]["total"] == "10h"
    assert attrs.evolve(plain.run.resources, total=None) == plain.run.resources


def test_few_nodes_may_be_avoided_and_never_those_that_the_job_needs() -> None:
    for nodes, machine, avoid in (
        (2, 100, 5),
        (2, 9400, 470),
        (2, 2, 0),
        (2, 3, 1),
        (95, 100, 5),
        (99, 100, 1),
    ):
        links = chain.of(made(site(nodes=machine), total="3d", nodes=nodes))
        assert links is not None
        assert links.avoid == avoid


def test_a_job_that_is_queued_again_is_one_job() -> None:
    plan = made(site(), time="10h", total="100h", requeue=True)
    assert predict.cost(plan, plan.steps) == predict.Cost(jobs=1, node_hours=200)
    assert predict.jobs(plan, HOURS("100h").seconds) == 1
    assert plan_text.size_of(plan).endswith("4d04h in 10 attempts of 10h, 200 node-hours")
    several = made(site(), time="10h", total="100h")
    assert predict.cost(several, several.steps).jobs == 10
    assert predict.jobs(several, HOURS("100h").seconds) == 10
