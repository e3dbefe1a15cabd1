"""With accounting Slurm itself refuses what accounts and QoS do not allow, and remembers what it forgot."""

from __future__ import annotations

import pytest

from tests.patience import wait_for
from tests.twin.faults import fault
from tests.twin.life import Twin
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


def asks(words: str) -> str:
    """The words as what the run asks of Slurm, past the plan's own checks."""
    return f"resources.ask={{slurm={words.split()}}}"


@pytest.fixture
def user(accounted: Twin, request: pytest.FixtureRequest) -> User:
    """A user with a run that sleeps."""
    return User.waiting(accounted, request.node.name)


def refused(user: User, *words: str, account: str = "abc123") -> str:
    """What is said of a submission that must not succeed."""
    done = user.hpctrain("submit", "run.toml", "--account", account, *words)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def test_slurm_refuses_a_qos(user: User) -> None:
    assert "Invalid qos" in refused(user, "--set", asks("--qos=nonsense"))
    assert user.twin.sh("squeue -h --me") == ""


def test_a_project_that_a_user_has_left(user: User) -> None:
    """Its folders are still there."""
    folders = "/lustre/orion/other1/scratch/alice /lustre/orion/other1/proj-shared"
    user.twin.run("bash", "-c", f"mkdir -p {folders} && chown alice {folders}")
    text = refused(user, account="other1")
    assert "Invalid account" in text
    assert "set your project" in text


def test_one_job_of_a_qos(user: User) -> None:
    fault(user.twin, "drain", user.twin.site.hosts[0].name)
    try:
        user.submit("--set", asks("--qos=debug"), "--set", 'resources.time="10m"')
        text = refused(user, "--set", asks("--qos=debug"), "--set", 'resources.time="10m"')
    finally:
        fault(user.twin, "resume", user.twin.site.hosts[0].name)
        user.twin.run("scancel", "--user=alice")
    assert "MaxSubmitJob" in text
    assert "wait until one of your jobs ends" in text
    wait_for("an empty queue", lambda: not user.twin.sh("squeue -h --me"))


def test_what_the_controller_forgot_stands_in_the_accounting(user: User) -> None:
    user.submit("--set", 'train.command.argv=["bash", "-c", "exit 3"]', "--set", "resources.nodes=1")
    found = user.until("failed", seconds=60)
    job = user.step(found)["job"]
    listed = ("sacct", "-nXPj", job, "-oState")
    wait_for("the row", lambda: user.twin.run(*listed).stdout.strip() == "FAILED")
    user.twin.sh(f"rm {found['path']}/steps/train/exit")
    fault(user.twin, "forget")
    step = user.step(user.status())
    assert (step["state"], step["exit_code"], step["said"]) == ("failed", 3, "scheduler")


def test_a_dead_database_hides_no_job(user: User) -> None:
    twin = user.twin
    user.submit("--set", 'train.command.argv=["sleep", "20"]')
    user.until("running", seconds=30)
    number = twin.run("cat", "/run/slurmdbd.pid").stdout.strip()
    twin.run("kill", "-STOP", number)
    try:
        assert user.status()["state"] == "running"
    finally:
        twin.run("kill", "-CONT", number)
    user.hpctrain("cancel")
    user.until("cancelled", seconds=30)
