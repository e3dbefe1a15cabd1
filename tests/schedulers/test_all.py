"""What every scheduler must do, on a real Slurm, on a stand-in for an OpenPBS and on this machine."""

from __future__ import annotations

import json

import pytest

from hpctrain.model.job import State
from tests.patience import wait_for
from tests.schedulers import build
from tests.schedulers.site import Site


def test_two_nodes_of_ranks_know_who_they_are(site: Site) -> None:
    plan = build.plan(build.step(build.WHO, **build.many(per_node=2, nodes=2)))
    job = site.start(plan)
    assert site.until_over(plan).state is State.DONE
    said = sorted(line.split() for line in site.log().splitlines() if line[:1].isdigit())
    head = {"local": "127.0.0.1", "slurm": "n1", "pbs": "node1"}[site.scheduler.__name__.rpartition(".")[2]]
    assert said == [[str(r), str(r % 2), str(r // 2), "4", "2", "2", head, "0"] for r in range(4)]
    ended = json.loads((site.root / "run/steps/train/exit").read_text())
    assert (ended["job"], ended["code"], ended["attempt"]) == (job, 0, 0)


def test_nothing_of_the_callers_environment_is_in_the_task(site: Site) -> None:
    plan = build.plan(build.step("env", 'echo "home=$HOME"', **build.many(nodes=1)))
    site.start(plan)
    site.until_over(plan)
    assert "CANARY" not in site.log()
    assert f"home={site.root}" in site.log()


def test_a_failing_rank_ends_the_others_and_the_step(site: Site) -> None:
    lines = ("[[ $HPC_RANK != 1 ]] || exit 3", "sleep 100")
    plan = build.plan(build.step(*lines, **build.many()))
    site.start(plan)
    found = site.until_over(plan)
    assert (found.state, found.source) == (State.FAILED, "exit")
    assert found.exit_code
    assert not (site.root / "run/steps/train/finished").exists()


def test_a_finished_step_ends_at_once_when_it_is_started_again(site: Site) -> None:
    plan = build.plan(build.step("echo again >> once"))
    site.start(plan)
    site.until_over(plan)
    site.start(plan)
    assert site.until_over(plan).state is State.DONE
    assert (site.root / "run/once").read_text() == "again\n"


def test_cancelling_ends_every_process_and_can_be_repeated(site: Site) -> None:
    plan = build.plan(build.step("touch began.$HPC_RANK", "exec sleep 300", **build.many(nodes=1)))
    job = site.start(plan)
    wait_for("ranks", lambda: len(list((site.root / "run").glob("began.*"))) == 2)
    site.cancel(job)
    found = site.until_over(plan)
    assert found.state is State.CANCELLED, site.log()
    site.cancel(job, "999999")


def test_a_dependent_step_waits_and_sees_what_was_made(site: Site) -> None:
    first = build.plan(build.step("sleep 1", "echo made > made", name="env"))
    second = build.plan(build.step("cat made", name="train"))
    env = site.start(first)
    train = site.start(second, after=(("ok", env),))
    found = site.job(train)
    assert found is not None
    assert found.state in (State.QUEUED, State.RUNNING)
    assert site.until_over(second).state is State.DONE
    assert "made" in site.log("train")


@pytest.mark.parametrize(("when", "state"), [("ok", State.CANCELLED), ("any", State.DONE)])
def test_what_follows_a_failure_depends_on_how_it_waits(site: Site, when: str, state: State) -> None:
    first = build.plan(build.step("exit 1", name="env"))
    second = build.plan(build.step("echo ran", name="train"))
    env = site.start(first)
    site.start(second, after=((when, env),))
    assert site.until_over(second).state is state
    assert ("ran" in site.log("train")) == (state is State.DONE)


def test_a_job_survives_a_second_submission_of_its_tag(site: Site) -> None:
    plan = build.plan(build.step("sleep 1", "echo one >> count"))
    order = site.order(plan)
    from hpctrain.run.steps.submit import job_of

    job = job_of(order, "a" * 32)
    ids = [site.submit(job, "a" * 32) for _ in range(2)]
    site.jobs += ids
    wait_for("their end", lambda: all(s.state.over for s in site.query(tuple(ids), ())), 30)
    assert (site.root / "run/count").read_text() == "one\n"


def test_a_tag_finds_its_job(site: Site) -> None:
    plan = build.plan(build.step("true"))
    job = site.start(plan)
    tag = site.record().read()[0]["tag"]
    assert [(s.id, s.tag) for s in site.query((), (tag,))] == [(job, tag)]
    assert list(site.query(("424242",), ("b" * 32,))) == []
