"""Many runs under seeded faults: none is lost, none is doubled, and what is allocated is used."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from hpctrain.plan import interval
from hpctrain_job.chain.decision import Terms
from tests.chain.simulator import Faults, Simulator, Told, Work

DAY = 86400
IDLE = int(interval.patience(None, Faults().node)["idle"])
TERMS = Terms(total=30 * DAY, time=DAY, links=4, idle=IDLE)
RUNS = 600 if os.environ.get("HPCTRAIN_SOAK") else 40


def told(seed: int, *, terms: Terms = TERMS, work: Work | None = None, faults: Faults | None = None) -> Told:
    return Simulator(seed, terms, work or Work(), faults or Faults()).run()


@pytest.fixture(scope="module")
def runs() -> list[Told]:
    return [told(seed) for seed in range(RUNS)]


def test_no_run_is_lost_and_none_needs_a_person(runs: list[Told]) -> None:
    faults = sum((run.faults for run in runs), Counter[str]())
    assert faults.total() - faults["finished"] - faults["saved"] > 15 * RUNS, faults
    assert min(faults[kind] for kind in ("node fault", "lost", "failed", "corrupt", "refused", "time limit"))
    assert [run.record.ended for run in runs if run.record.ended != "finished"] == []
    assert [run.step for run in runs if run.step != Work().goal] == []
    assert sum(run.persons for run in runs) == 0


def test_one_job_that_is_queued_again_is_never_lost_nor_doubled() -> None:
    terms = replace(TERMS, links=1, requeue=True)
    runs = [told(seed, terms=terms) for seed in range(RUNS)]
    assert [run.record.ended for run in runs if run.record.ended != "finished"] == []
    assert {job for run in runs for job in run.started} == {"1"}
    assert sum(run.persons for run in runs) == 0
    assert all(whole for run in runs for _, whole in run.resumed_from)


def test_no_attempt_goes_on_from_a_checkpoint_that_does_not_verify(runs: list[Told]) -> None:
    resumed = [whole for run in runs for _, whole in run.resumed_from]
    assert len(resumed) > 10 * RUNS
    assert all(resumed)


def test_jobs_that_remain_when_the_chain_has_ended_are_none(runs: list[Told]) -> None:
    assert [run.record.waiting for run in runs if run.record.waiting] == []


def test_goodput_is_near_what_the_rates_allow(runs: list[Told]) -> None:
    """A fault costs half an interval and a start; a save costs its time; a node that fails often is left out
    once it was named."""
    work, faults = Work(), Faults()
    goodput = sum(run.step for run in runs) / sum(run.allocated for run in runs)
    saving = work.save / (work.every + work.save)
    per_attempt = faults.node
    lost = (work.every / 2 + work.start) / per_attempt + (work.start + work.notice) / TERMS.time
    expected = (1 - saving) * (1 - lost)
    print(f"goodput {goodput:.4f}, of good nodes alone {expected:.4f}")
    assert expected - 0.03 < goodput <= expected + 0.01


def test_a_node_that_fails_often_is_avoided_and_that_pays() -> None:
    bad = Faults(worse=3, silent=0.0)
    seeds = range(RUNS)
    kept = [told(seed, faults=bad) for seed in seeds]
    named = sum(len({"n0", "n1", "n2"} & set(run.record.avoided)) for run in kept)
    assert named > 2 * RUNS, "of three such nodes, more than two are left out at the end"
    never = [told(seed, faults=bad, terms=replace(TERMS, avoid=0)) for seed in seeds]
    faults = [sum(run.faults["node fault"] for run in runs) for runs in (kept, never)]
    assert faults[0] < 0.75 * faults[1]
    assert sum(run.allocated for run in kept) < sum(run.allocated for run in never)


@pytest.mark.parametrize("seed", range(5))
def test_what_cannot_go_well_ends_with_its_reason(seed: int) -> None:
    run = told(seed, work=replace(Work(), diverges_at=50_000))
    assert run.record.ended == "diverged"
    hopeless = replace(Faults(), node=200.0, silent=0.0)
    stuck = told(seed, faults=hopeless)
    assert stuck.record.ended.startswith(f"no progress over {IDLE} attempts")
    assert len(stuck.record.attempts) == IDLE
    short = told(seed, terms=replace(TERMS, total=2 * DAY))
    assert short.record.ended == "its total time is used up"
    assert short.allocated <= 3 * DAY


@pytest.mark.parametrize("links", [1, 2, 10])
def test_with_few_jobs_in_the_queue_a_person_is_needed_and_nothing_is_lost(links: int) -> None:
    """With one job at a time nobody is left behind it: `hpctrain continue` goes on, and loses nothing."""
    runs = [told(seed, terms=replace(TERMS, links=links)) for seed in range(10)]
    assert {run.record.ended for run in runs} == {"finished"}
    persons = sum(run.persons for run in runs)
    assert persons > 10 if links == 1 else persons <= (10 if links == 2 else 0)
