"""What only PBS has, on the stand-in: attempts, history or none, lost answers, warnings, its mpiexec."""

from __future__ import annotations

import pytest

from hpctrain.errors import NotReachable, SubmitError
from hpctrain.model.job import State
from hpctrain.run.steps.submit import Patience, resume_submission, submit_step
from hpctrain_plugins.schedulers import pbs_query, pbs_submit
from tests.patience import wait_for, within
from tests.schedulers import build
from tests.schedulers.site import QUICK, Site
from tests.standin_pbs.fixtures import Standin

ON_DEBUG = {"pbs": ("-q debug",)}


def test_a_requeued_job_keeps_its_id_and_counts_its_attempts(on_pbs: Site, standin: Standin) -> None:
    plan = build.plan(build.step("[[ $HPC_ATTEMPT != 0 ]] || { touch began; exec sleep 300; }", build.WHO))
    job = on_pbs.start(plan)
    wait_for("first attempt", (on_pbs.root / "run/began").exists)
    assert standin.run("qrerun", job).returncode == 0
    wait_for("second attempt", lambda: standin.jobs[job].get("run_count") == 2)
    found = on_pbs.until_over(plan)
    assert (found.state, found.job, found.attempt) == (State.DONE, job, 1)


@pytest.mark.parametrize("family", ["pals", "hydra"])
def test_every_rank_hears_usr1_before_the_time_is_over(on_pbs: Site, family: str) -> None:
    lines = (
        "trap 'sleep $HPC_RANK; touch saved.$HPC_RANK; exit 75' USR1",
        "touch began.$HPC_RANK",
        "while :; do sleep 0.1; done",
    )
    toy = build.cluster()
    policy = build.evolve(toy.policy, submit_env=("STANDIN_MPIEXEC",))
    on_pbs.env = {"STANDIN_MPIEXEC": family}
    step = build.step(*lines, trains=True, **build.many())
    plan = build.plan(step, time="10s", on=build.evolve(toy, policy=policy))
    on_pbs.start(plan)
    found = on_pbs.until(plan, "waiting", seconds=40)
    assert len(list((on_pbs.root / "run").glob("saved.*"))) == 4
    assert (found.exit_code, found.source) == (75, "exit")


def test_a_job_that_does_not_listen_is_killed_at_its_limit(on_pbs: Site, standin: Standin) -> None:
    lines = ("trap '' USR1 TERM", "touch began", "while :; do sleep 0.1; done")
    plan = build.plan(build.step(*lines, trains=True), time="4s")
    job = on_pbs.start(plan)
    wait_for("its end", lambda: standin.jobs[job]["job_state"] == "F", 30)
    state = on_pbs.job(job)
    assert state is not None
    assert (state.state, state.reason) == (State.FAILED, "it ran into its time limit (Exit_status -29)")
    assert "=>> PBS: job killed: walltime" in on_pbs.log()
    assert on_pbs.status(plan).state is State.FAILED


def test_an_end_by_a_rank_has_that_ranks_code(on_pbs: Site) -> None:
    lines = ("[[ $HPC_RANK != 1 ]] || exit 3", "exec sleep 100")
    plan = build.plan(build.step(*lines, **build.many()))
    with within(30):
        on_pbs.start(plan)
        assert on_pbs.until_over(plan).exit_code == 3


def test_variables_of_the_site_arrive_as_they_are(on_pbs: Site, standin: Standin) -> None:
    """-v of qsub changes quotes and backslashes, and shows values to everybody."""
    value = 'it\'s "a" \\b, $HOME  '
    on_pbs.env = {"TOY_LICENCE": value}
    plan = build.plan(build.step('printf "<%s>" "$TOY_LICENCE"'))
    job = on_pbs.start(plan)
    on_pbs.until_over(plan)
    assert f"<{value}>" in on_pbs.log()
    assert "TOY_LICENCE" not in standin.jobs[job]["Variable_List"]


def test_history_off_forgets_a_job_at_once(on_pbs: Site, standin: Standin) -> None:
    standin.set(history=False)
    running = build.plan(build.step("until [[ -e go ]]; do sleep 0.1; done"))
    job = on_pbs.start(running)
    on_pbs.until(running, "running")
    (on_pbs.root / "run/go").touch()
    assert on_pbs.until_over(running).source == "exit"
    assert on_pbs.job(job) is None
    failed = build.plan(build.step("exit 5"))
    on_pbs.start(failed, "failed")
    assert on_pbs.until_over(failed, "failed").exit_code == 5
    (on_pbs.root / "run/steps/train/exit").unlink()
    (on_pbs.root / "run/steps/train/finished").unlink()
    lost = on_pbs.status(running)
    assert (lost.state, lost.reason) == (State.UNKNOWN, "its job is unknown to the scheduler")


def test_without_history_a_chain_that_was_let_go_is_no_success(on_pbs: Site, standin: Standin) -> None:
    standin.set(history=False)
    first = build.plan(build.step("sleep 1; exit 1", name="env"))
    second = build.plan(build.step("echo ran", name="train"))
    env = on_pbs.start(first)
    on_pbs.start(second, after=(("ok", env),))
    wait_for("the end of the chain", lambda: not standin.jobs, 30)
    assert on_pbs.status(second).state is State.UNKNOWN
    assert "ran" not in on_pbs.log("train")


@pytest.mark.parametrize("lost", ["accepted", "dropped"])
def test_a_lost_answer_makes_one_job(on_pbs: Site, standin: Standin, lost: str) -> None:
    standin.set(lost=lost)
    plan = build.plan(build.step("echo once >>count"))
    job = on_pbs.start(plan)
    tag = on_pbs.record().read()[0]["tag"]
    assert standin.tagged(tag) == [job]
    assert [entry["event"] for entry in on_pbs.record().read()] == ["intent", "submitted"]
    assert on_pbs.until_over(plan).job == job
    assert (on_pbs.root / "run/count").read_text() == "once\n"


@pytest.mark.parametrize("fault", ["down", "frozen"])
def test_a_silent_server_is_never_taken_for_no_jobs(
    on_pbs: Site, standin: Standin, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = build.plan(build.step("until [[ -e go ]]; do sleep 0.1; done"))
    on_pbs.start(plan)
    on_pbs.until(plan, "running")
    for module in (pbs_query, pbs_submit):
        monkeypatch.setattr(module, "SECONDS", 1.0)
    standin.set(**{fault: True})
    with pytest.raises(NotReachable, match="pbs does not answer"):
        on_pbs.job("1.pbs")
    with pytest.raises(NotReachable):
        on_pbs.cancel("1.pbs")
    order = on_pbs.order(build.plan(build.step("echo once >>count")), "second")
    impatient = Patience(between=0.1, silent=0.2)
    with pytest.raises(SubmitError) as caught:
        submit_step(order, on_pbs.record("second"), on_pbs.submit, on_pbs.query, impatient)
    assert caught.value.problems[0].code == "submit-unknown"
    standin.set(**{fault: False})
    job = resume_submission(order, on_pbs.record("second"), on_pbs.submit, on_pbs.query, QUICK)
    assert job is not None
    on_pbs.jobs.append(job)
    (on_pbs.root / "run/go").touch()
    assert on_pbs.until_over(plan).state is State.DONE
    wait_for("the second", (on_pbs.root / "second/count").exists)
    assert standin.tagged(on_pbs.record("second").read()[0]["tag"]) == [job]


def test_a_queues_limits_are_said_before_and_behind_the_door(on_pbs: Site) -> None:
    held = build.plan(build.step("true"), layers=ON_DEBUG, ask=("-h",), scheduler="pbs")
    waiting = on_pbs.job(on_pbs.start(held, "one"))
    assert waiting is not None
    assert (waiting.state, waiting.queue_options) == (State.QUEUED, ("-q debug",))
    on_pbs.start(held, "two")
    with pytest.raises(SubmitError) as caught:
        on_pbs.start(held, "three")
    (problem,) = caught.value.problems
    assert problem.message.startswith("pbs refused the job of step train: would exceed queue")
    assert problem.hint == "wait until one of your jobs ends: hpctrain runs"


def test_a_chain_whose_first_job_was_deleted_before_it_ran_says_so(on_pbs: Site, standin: Standin) -> None:
    held = build.plan(build.step("true", name="env"), ask=("-h",), scheduler="pbs")
    first = on_pbs.start(held)
    second = on_pbs.start(build.plan(build.step("true")), after=(("ok", first),))
    standin.run("qdel", first)
    _, waiting = on_pbs.query((first, second), ())
    assert (waiting.state, waiting.reason) == (State.QUEUED, pbs_query.STUCK)


def test_a_job_that_can_never_run_says_so(on_pbs: Site) -> None:
    plan = build.plan(build.step("true", **build.many(nodes=3)))
    found = on_pbs.job(on_pbs.start(plan))
    assert found is not None
    assert found.state is State.QUEUED
    assert found.reason.startswith("no node will ever have what it asks for (Can Never Run: Not enough")


def test_a_starter_that_is_not_the_sites_is_refused(on_pbs: Site, standin: Standin) -> None:
    (standin.bin / "mpiexec").write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 4.1.4'\n")
    plan = build.plan(build.step("true", **build.many()))
    on_pbs.start(plan)
    assert on_pbs.until_over(plan).exit_code == 78
    assert "load the module of the site's own mpiexec (PALS or Hydra)" in on_pbs.log()
