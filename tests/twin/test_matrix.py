"""What a job can meet in Slurm, on a twin with accounting; what needs a lever stands in test_faults.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import wait_for
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

HEARS = 'trap "echo heard" USR1; echo began; while :; do sleep 0.2; done'


def runs(*argv: str, minutes: int = 5) -> tuple[str, ...]:
    """The words that make the run this command on one node."""
    words = ", ".join(f"'''{word}'''" for word in argv)
    sets = (f"train.command.argv=[{words}]", "resources.nodes=1", f'resources.time="{minutes}m"')
    return tuple(word for value in sets for word in ("--set", value))


@pytest.fixture
def user(accounted: Twin, request: pytest.FixtureRequest) -> User:
    """A user with a run named after the test."""
    return User.waiting(accounted, request.node.name)


@pytest.fixture(scope="module", autouse=True)
def slow(accounted: Twin) -> Iterator[User]:
    """A run that does not end in its minute: submitted first and looked at last."""
    found = User.waiting(accounted, "does-not-end")
    found.submit(*runs("bash", "-c", HEARS, minutes=1))
    yield found
    accounted.run("scancel", "--user=alice")


def test_cancel_ends_every_process(user: User) -> None:
    user.submit(*runs("sleep", "301"))
    user.until("running", seconds=30)
    ranks = ("pgrep", "-u", "alice", "-fx", "sleep 301")
    wait_for("its ranks", lambda: user.twin.run(*ranks).stdout)
    assert user.hpctrain("cancel").returncode == 0
    found = user.until("cancelled", seconds=30)
    wait_for("their end", lambda: not user.twin.run(*ranks).stdout)
    assert user.hpctrain("cancel").returncode == 0
    job = user.step(found)["job"]
    assert user.twin.sh(f"sacct -nXPj {job} -oState").startswith("CANCELLED")


def test_too_much_memory(user: User) -> None:
    eats = "x = b'1' * 1_500_000_000; import time; time.sleep(60)"
    user.submit(*runs("/usr/bin/python3", "-c", eats), "--set", "resources.memory_gb=1")
    step = user.step(user.until("failed", seconds=60))
    assert step["exit_code"] == 137
    assert "memory limit" in user.log()


def test_a_missing_log_folder(user: User) -> None:
    nodes = [host.name for host in user.twin.site.hosts]
    for node in nodes:
        fault(user.twin, "drain", node)
    try:
        path = user.submit(*runs("echo", "written"))["path"]
        user.twin.sh(f"rm -r {path}/logs")
    finally:
        for node in nodes:
            fault(user.twin, "resume", node)
    user.until("done", seconds=60)
    # this Slurm makes the folder; an older one starts nothing, see tests/schedulers
    assert "written" in user.twin.sh(f"cat {path}/logs/train.log")


@pytest.fixture
def chained(twin: Start, request: pytest.FixtureRequest) -> User:
    """Somebody on Leonardo, where what a run needs is made by a job of its own."""
    return User.waiting(twin("leonardo"), request.node.name)


def asset(user: User, line: str) -> None:
    """The run needs a file that a bash line makes."""
    text = user.twin.sh(f"cat {user.folder}/run.toml")
    user.put("run.toml", f"{text}\n[assets]\nfile = {{ command = ['bash', '-c', '''{line}'''] }}\n")


def test_a_step_waits_for_another_job(chained: User) -> None:
    asset(chained, "sleep 5; echo x >$WORK")
    found = chained.submit(*runs("true"))
    waits = chained.step(found)
    assert (waits["state"], waits["reason"]) == ("queued", "it waits for an earlier step (Dependency)")
    chained.until("done", seconds=60)


def test_a_step_never_starts_after_a_failure(chained: User) -> None:
    asset(chained, "exit 3")
    chained.submit(*runs("true"))
    found = chained.until("failed", seconds=60)
    assert [row["exit_code"] for row in found["steps"] if row["state"] == "failed"] == [3]
    # the controller takes the dependent job away when it looks at its queue next
    wait_for("its end", lambda: chained.step(chained.status())["state"] == "cancelled")
    assert chained.step(chained.status())["exit_code"] is None


def test_a_warning_before_the_time_limit(slow: User) -> None:
    step = slow.step(slow.until("failed", seconds=150))
    assert "it ran into its time limit (" in step["reason"], step
    assert slow.log().count("heard\n") == 1
    assert slow.twin.sh(f"sacct -nXPj {step['job']} -oState").strip() == "TIMEOUT"
