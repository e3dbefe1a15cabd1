"""What only Slurm has: requeue, a controller that is silent or forgets, lost answers, time limits."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import NotReachable, SubmitError
from hpctrain.model.job import State
from hpctrain.model.words import Raw
from hpctrain.run.steps.submit import Patience, resume_submission, submit_step
from hpctrain_plugins.schedulers import slurm as plugin
from hpctrain_plugins.schedulers.slurm_query import states
from tests.conftest import needs
from tests.patience import wait_for
from tests.rig.conf import Conf
from tests.rig.slurm import DATABASE, NEEDED, Rig, missing
from tests.schedulers import build
from tests.schedulers.site import QUICK, Site

pytestmark = pytest.mark.slurm


def with_sbatch(rig: Rig, root: Path, name: str, body: str) -> Site:
    """A site whose sbatch is `body`; "${real[@]}" in it is the real one."""
    folder = rig.dir / name
    if not folder.exists():
        rig.clients(name, sbatch=body)
    return Site(plugin, root, {"PATH": f"{folder}:{os.environ['PATH']}"})


def jobs_with_tags(rig: Rig, tags: set[str]) -> list[str]:
    """The tags of all jobs that Slurm ever took, as often as there are jobs."""
    names = rig.run("squeue", "-hatall", "-o%j").stdout.split()
    return [tag for name in names for tag in tags if name.endswith(tag)]


def test_each_rank_sees_its_own_gpu_or_all(on_slurm: Site) -> None:
    for visible, expected in (("one", {"0", "1", "2", "3"}), ("all", {"0,1,2,3"})):
        line = 'echo "gpus=$CUDA_VISIBLE_DEVICES"'
        plan = build.plan(build.step(line, **build.many(per_node=4, nodes=1, visible=visible)))
        on_slurm.start(plan, visible)
        assert on_slurm.until_over(plan, visible).state is State.DONE, on_slurm.log(folder=visible)
        log = on_slurm.log(folder=visible)
        assert {line[5:] for line in log.splitlines() if line.startswith("gpus=")} == expected


def test_a_requeued_job_keeps_its_id_and_counts_its_attempts(on_slurm: Site, slurm: Rig) -> None:
    plan = build.plan(build.step("[[ $HPC_ATTEMPT != 0 ]] || { touch began; exec sleep 300; }", build.WHO))
    job = on_slurm.start(plan)
    wait_for("first attempt", (on_slurm.root / "run/began").exists)
    assert slurm.run("scontrol", "requeue", job).returncode == 0
    queued = on_slurm.until(plan, "queued")
    assert (queued.job, queued.source) == (job, "scheduler")
    time.sleep(2)  # a node refuses the credential of an attempt that starts in the second of the kill
    wait_for(
        "second attempt",
        lambda: slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now").returncode == 0,
    )
    found = on_slurm.until_over(plan)
    assert (found.state, found.job, found.attempt) == (State.DONE, job, 1)


def test_a_job_hears_usr1_before_its_time_is_over(on_slurm: Site) -> None:
    lines = ("trap 'echo saved > saved; exit 75' USR1", "touch began", "while :; do sleep 0.1; done")
    plan = build.plan(build.step(*lines, trains=True), time="1m")
    on_slurm.start(plan)
    found = on_slurm.until(plan, "waiting", seconds=100)
    assert (on_slurm.root / "run/saved").exists()
    assert (found.exit_code, found.source) == (75, "exit")
    assert "saved" in found.reason


def test_a_forgotten_job_is_known_by_its_own_record_or_unknown(on_slurm: Site, slurm: Rig) -> None:
    done = build.plan(build.step("true"))
    on_slurm.start(done, "done")
    on_slurm.until_over(done, "done")
    failed = build.plan(build.step("exit 5"))
    on_slurm.start(failed, "failed")
    on_slurm.until_over(failed, "failed")
    lost = build.plan(build.step("true"))
    on_slurm.start(lost, "lost")
    on_slurm.until_over(lost, "lost")
    (on_slurm.root / "lost/steps/train/exit").unlink()
    slurm.forget()
    assert on_slurm.status(done, "done").state is State.DONE
    known = on_slurm.status(failed, "failed")
    assert (known.state, known.exit_code, known.source) == (State.FAILED, 5, "exit")
    unknown = on_slurm.status(lost, "lost")
    assert unknown.state is State.UNKNOWN
    assert unknown.reason == "its job is unknown to the scheduler"


def test_a_lost_answer_adopts_the_job_that_exists(on_slurm: Site, slurm: Rig) -> None:
    said = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    lost = f'"${{real[@]}}" "$@" >/dev/null; echo "{said}" >&2; exit 1'
    site = with_sbatch(slurm, on_slurm.root, "lost-bin", lost)
    plan = build.plan(build.step("true"))
    job = site.start(plan)
    tag = site.record().read()[0]["tag"]
    assert jobs_with_tags(slurm, {tag}) == [tag]
    assert [e["event"] for e in site.record().read()] == ["intent", "submitted"]
    assert site.until_over(plan).job == job


def test_an_answer_that_never_was_is_tried_once_more(on_slurm: Site, slurm: Rig) -> None:
    body = 'n=$HOME/tries; echo x >>"$n"; [[ $(wc -l <"$n") == 1 ]] || exec "${real[@]}" "$@"\n'
    body += 'echo "sbatch: error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
    site = with_sbatch(slurm, on_slurm.root, "second-bin", body)
    plan = build.plan(build.step("true"))
    site.start(plan)
    tag = site.record().read()[0]["tag"]
    assert jobs_with_tags(slurm, {tag}) == [tag]


def test_a_refusal_has_slurms_words_and_a_hint(on_slurm: Site) -> None:
    plan = build.plan(build.step("true"), ask=("--partition=nope",))
    with pytest.raises(SubmitError) as caught:
        on_slurm.start(plan)
    (problem,) = caught.value.problems
    assert problem.code == "refused"
    assert "Invalid partition name specified" in problem.message
    assert problem.hint
    assert [e["event"] for e in on_slurm.record().read()] == ["intent", "refused"]
    assert resume_submission(on_slurm.order(plan), on_slurm.record(), on_slurm.submit, on_slurm.query) is None


@pytest.fixture
def impatient() -> Iterator[Rig]:
    """A Slurm whose clients give up after two seconds."""
    rig = Rig(Conf(message_timeout=2, nodes=1)).up()
    yield rig
    rig.down()


def test_a_frozen_controller_never_makes_two_jobs(impatient: Rig, slurm: Rig) -> None:
    site = Site(plugin, impatient.dir / "sites", {"PATH": f"{impatient.bin}:{os.environ['PATH']}"})
    plan = build.plan(build.step("true"))
    order = site.order(plan)
    with impatient.frozen():
        with pytest.raises(SubmitError) as caught:
            submit_step(order, site.record(), site.submit, site.query, Patience(between=1, silent=1))
        assert caught.value.problems[0].code == "submit-unknown"
        with pytest.raises(NotReachable):
            site.query((), ("a" * 32,))
        assert site.status(plan).state is State.UNKNOWN
        assert site.status(plan).reason == "the scheduler does not answer"
    job = resume_submission(order, site.record(), site.submit, site.query, QUICK)
    time.sleep(1)
    tag = site.record().read()[0]["tag"]
    assert jobs_with_tags(impatient, {tag}) == [tag]
    assert site.until_over(plan).job == job


@pytest.mark.parametrize("before", [(), (Raw("true"),)], ids=["ranks", "nodes"])
def test_ranks_start_once_when_the_controller_answers_again(impatient: Rig, before: tuple[Raw, ...]) -> None:
    site = Site(plugin, impatient.dir / "sites", {"PATH": f"{impatient.bin}:{os.environ['PATH']}"})
    wait = Raw("touch ready; until [[ -e go ]]; do sleep 0.05; done")
    plan = build.plan(build.step("echo ran >>ran"))
    around = attrs.evolve(plan.steps[0].around, job=(wait,), node=before)
    plan = attrs.evolve(plan, steps=(attrs.evolve(plan.steps[0], around=around),))
    site.start(plan)
    run = site.root / "run"
    wait_for("the job", (run / "ready").exists)
    with impatient.frozen():
        (run / "go").touch()
        wait_for("srun's failure", lambda: "nothing began" in site.log())
        assert site.status(plan).state is State.UNKNOWN
    assert site.until_over(plan).state is State.DONE, site.log()
    assert (run / "ran").read_text() == "ran\n"


def test_what_began_is_not_started_again_whatever_its_code(on_slurm: Site) -> None:
    plan = build.plan(build.step("echo ran >>ran; exit 71"))
    on_slurm.start(plan)
    found = on_slurm.until_over(plan)
    assert (found.state, found.exit_code) == (State.FAILED, 71)
    assert (on_slurm.root / "run/ran").read_text() == "ran\n"


def test_without_its_log_folder_this_slurm_starts_nothing(on_slurm: Site, slurm: Rig) -> None:
    plan = build.plan(build.step("touch ran"), ask=("--hold",))
    job = on_slurm.start(plan)
    shutil.rmtree(on_slurm.root / "run/logs", ignore_errors=True)
    assert slurm.run("scontrol", "release", job).returncode == 0
    found = on_slurm.until_over(plan)
    assert (found.state, found.source) == (State.FAILED, "scheduler")
    assert not (on_slurm.root / "run/ran").exists()


def test_a_lost_node_puts_the_job_back_in_the_queue(on_slurm: Site, slurm: Rig) -> None:
    plan = build.plan(
        build.step("[[ $HPC_ATTEMPT != 0 ]] || { touch began; exec sleep 300; }"), ask=("--nodelist=n2",)
    )
    job = on_slurm.start(plan)
    wait_for("first attempt", (on_slurm.root / "run/began").exists)
    slurm.kill_node("n2")
    assert slurm.run("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test").returncode == 0
    try:
        assert on_slurm.until(plan, "queued").job == job
    finally:
        on_slurm.cancel(job)
        slurm.start_node("n2")


@pytest.fixture(scope="module")
def accounted() -> Iterator[Rig]:
    """A Slurm with accounting."""
    reason = missing((*NEEDED, *DATABASE))
    needs("slurmdbd", not reason, reason)
    rig = Rig(Conf(nodes=1, accounting=True)).up()
    yield rig
    rig.down()


def test_accounting_remembers_what_the_controller_forgot(accounted: Rig) -> None:
    site = Site(plugin, accounted.dir / "sites", {"PATH": f"{accounted.bin}:{os.environ['PATH']}"})
    plan = build.plan(build.step("exit 3"))
    job = site.start(plan)
    tag = site.record().read()[0]["tag"]
    site.until_over(plan)
    (site.root / "run/steps/train/exit").unlink()
    wait_for("the row", lambda: "FAILED" in accounted.run("sacct", "-nXoState", "-Snow-2days").stdout)
    accounted.forget()
    found = site.status(plan)
    assert (found.state, found.exit_code, found.source) == (State.FAILED, 3, "scheduler")
    assert [(s.id, s.state) for s in site.query((), (tag,))] == [(job, State.FAILED)]


def test_the_jobs_of_a_project_are_those_of_all_its_users(on_slurm: Site, slurm: Rig) -> None:
    options = (
        "--parsable",
        "--account=p1",
        "--nodes=2",
        "--gres=gpu:2",
        "--output=/dev/null",
        "--wrap=sleep 60",
    )
    ids = {
        user: slurm.run("sbatch", *options, user=user, cwd="/tmp").stdout.strip() for user in ("alice", "bob")
    }
    try:
        found = {job.user: job for job in plugin.query_jobs((), (), "p1", True, on_slurm.tools)}
        assert {user: job.id for user, job in found.items()} == ids
        assert {job.node_count for job in found.values()} == {2}
        assert {job.gpus for job in found.values()} <= {4, None}
        assert plugin.query_jobs((), (), "p2", True, on_slurm.tools) == []
    finally:
        slurm.run("scancel", *ids.values())


def test_an_array_counts_as_the_jobs_that_it_still_is(on_slurm: Site, slurm: Rig) -> None:
    options = ("--parsable", "--account=p1", "--array=0-4%2", "--output=/dev/null", "--wrap=sleep 60")
    array = slurm.run("sbatch", *options, cwd="/tmp").stdout.strip()
    try:
        wait_for("two run", lambda: len(slurm.run("squeue", "-htR", f"-j{array}").stdout.splitlines()) == 2)
        for project, account in ((True, "p1"), (False, "")):
            jobs = plugin.query_jobs((), (), account, project, on_slurm.tools)
            live = [job.state for job in jobs if not job.state.over]
            assert sorted(live, key=str) == [State.QUEUED] * 3 + [State.RUNNING] * 2
        (one,) = states((array,), (), on_slurm.tools)
        assert one.state in (State.QUEUED, State.RUNNING)
    finally:
        slurm.run("scancel", array)


def test_the_place_in_the_queue_is_that_of_the_scheduler(on_slurm: Site, slurm: Rig) -> None:
    """All nodes are taken: who waits stands in line, and who waits for a step does not."""
    taking = slurm.run("sbatch", "--parsable", "--exclusive", "--nodes=2", "--wrap=sleep 300").stdout.strip()
    wait_for("it runs", lambda: slurm.run("squeue", "-h", "-o%T", f"-j{taking}").stdout.strip() == "RUNNING")
    wide = ("sbatch", "--parsable", "--exclusive", "--nodes=2", "--wrap=true")
    try:
        first, second = (slurm.run(*wide).stdout.strip() for _ in range(2))
        behind = slurm.run(*wide, f"--dependency=afterok:{first}").stdout.strip()

        def places() -> dict[str, int | None]:
            return {job.id: job.position for job in states((first, second, behind), (), on_slurm.tools)}

        wait_for("both stand in line", lambda: places() == {first: 1, second: 2, behind: None})
    finally:
        slurm.run("scancel", taking, first, second, behind)
