"""After each fault `status --json` says what is so, and the run goes on or can go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import wait_for, within
from tests.twin.faults import fault, start_now
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


@pytest.fixture
def site(twin: Start) -> Iterator[Twin]:
    """The twin on which things go wrong; every node is well before and after."""
    one = twin("frontier")
    yield one
    one.run("scancel", "--user=alice")
    one.run("scancel", "--name=urgent")
    idle = ("sinfo", "-h", "-pbatch", "-tidle", "-o%D")
    wait_for("idle nodes", lambda: one.run(*idle).stdout.strip() == "2", 60)


@pytest.fixture
def user(site: Twin, request: pytest.FixtureRequest) -> User:
    """A user with a run that sleeps, in a folder of this test."""
    return User.waiting(site, request.node.name)


def started(user: User, seconds: int = 60) -> str:
    """Submit, wait until its ranks run, and give its job."""
    user.submit("--set", f'train.command.argv=["sleep", "{seconds}"]')
    job: str = user.step(user.until("running", "done", seconds=30))["job"]
    line = f"pgrep -u alice -fc '^sleep {seconds}$' || squeue -h -j {job} -t CD"
    wait_for("its ranks", lambda: user.twin.run("bash", "-c", line).stdout.strip(" 0\n"))
    return job


def test_a_frozen_controller(user: User) -> None:
    job = started(user)
    fault(user.twin, "ctld-freeze", "25")
    found = user.status()
    assert (found["state"], found["silent"]) == ("unknown", ["slurm does not answer"])
    assert user.step(found)["job"] == job
    assert user.step(found)["reason"] == "the scheduler does not answer"
    found = user.until("running", seconds=60)
    assert not found["silent"]


AT_SRUN = """\
#!/bin/bash
# srun as before, but it waits until it may.
touch /run/twin/once/at-srun
until [[ -e /run/twin/once/go ]]; do sleep 0.05; done
exec /usr/bin/srun "$@"
"""


def test_a_controller_frozen_while_a_job_starts(user: User) -> None:
    twin = user.twin
    twin.write("/usr/local/bin/srun", AT_SRUN, user="root")
    twin.sh("chmod 755 /usr/local/bin/srun; mkdir -p -m 777 /run/twin/once", user="root")
    try:
        user.submit("--set", 'train.command.argv=["bash", "-c", "echo ran >>ran"]')
        wait_for("the job", lambda: twin.run("test", "-e", "/run/twin/once/at-srun").returncode == 0)
        fault(twin, "ctld-freeze", "25")
        twin.sh("touch /run/twin/once/go", user="root")
        path = user.status()["path"]
        log = ("grep", "-q", "nothing began", f"{path}/logs/train.log")
        wait_for("srun's failure", lambda: twin.run(*log).returncode == 0, 60)
        user.until("done", seconds=90)  # and never failed on the way
    finally:
        twin.sh("rm -rf /usr/local/bin/srun /run/twin/once", user="root")
    assert twin.sh(f"cat {path}/ran") == "ran\n" * 2  # one of each rank


def test_a_killed_node(user: User) -> None:
    node = user.twin.site.hosts[0].name
    started(user)
    fault(user.twin, "node-kill", node)
    found = user.until("queued", "failed", seconds=90)
    assert user.step(found)["said"] == "scheduler"
    fault(user.twin, "node-start", node)


def test_a_drained_node(user: User) -> None:
    node = user.twin.site.hosts[0].name
    fault(user.twin, "drain", node)
    user.submit()
    found = user.until("queued", seconds=30)
    assert user.step(found)["said"] == "scheduler"
    fault(user.twin, "resume", node)
    user.until("running", seconds=30)


def test_a_lost_answer(user: User) -> None:
    fault(user.twin, "lose-answer")
    job = started(user, seconds=5)
    jobs = user.twin.sh("squeue -h --states=all -o '%i %j' --me")
    assert len([line for line in jobs.splitlines() if "a-lost-answer" in line]) == 1
    assert job.isdigit()
    user.until("done", seconds=60)


def test_a_forgotten_job(user: User) -> None:
    started(user, seconds=1)
    user.until("done", seconds=60)
    fault(user.twin, "forget")
    assert user.status()["state"] == "done"


def test_a_job_queued_again(user: User) -> None:
    job = started(user, seconds=4)
    fault(user.twin, "requeue", job)
    found = user.until("done", seconds=90)
    assert user.step(found)["job"] == job
    assert user.step(found)["attempt"] == 1


def test_a_preempted_job(user: User) -> None:
    job = started(user, seconds=8)
    fault(user.twin, "preempt", "3")
    start_now(user.twin, job)
    found = user.until("done", seconds=60)
    assert user.step(found)["attempt"] == 1


@pytest.mark.parametrize("what", ["bytes", "inodes"])
def test_a_full_quota(what: str, user: User) -> None:
    fault(user.twin, "quota-fill", "runs", what)
    try:
        account = user.twin.site.overlay.account
        done = user.hpctrain("submit", "run.toml", "--account", account)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert "space" in done.stderr or "quota" in done.stderr
    finally:
        fault(user.twin, "quota-free", "runs")
    started(user, seconds=1)
    user.until("done", seconds=60)


def test_the_purge(user: User) -> None:
    started(user, seconds=1)
    path = user.until("done", seconds=60)["path"]
    fault(user.twin, "purge-clock", "10")
    assert user.status()["state"] == "done"
    fault(user.twin, "purge-clock", "91")
    assert user.twin.sh(f"find {path} -type f") == ""
    done = user.hpctrain("status", "--json")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_a_cut_proxy(twin: Start) -> None:
    one = twin("olivia")
    node = one.site.hosts[0].name
    proxy = one.site.hosts[0].place.env["https_proxy"]
    line = f"curl -sS -m 5 -o /dev/null -x {proxy} http://hub.twin/"
    fault(one, "proxy-cut")
    with within(2):
        assert one.run("bash", "-c", line, node=node).returncode == 7
    fault(one, "proxy-mend")
    assert one.run("bash", "-c", line, node=node).returncode != 7
