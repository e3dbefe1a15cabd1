"""What only jobs of this machine have: processes, their numbers, their limits."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from hpctrain.model.job import State
from hpctrain_plugins.schedulers import local_jobs
from tests.conftest import needs
from tests.patience import wait_for
from tests.schedulers import build
from tests.schedulers.site import Site


def test_a_job_outlives_its_caller_in_a_session_of_its_own(on_local: Site) -> None:
    plan = build.plan(build.step("touch began", "exec sleep 60"))
    job = on_local.start(plan)
    wait_for("start", (on_local.root / "run/began").exists)
    (found,) = local_jobs.find((job,), ())
    assert os.getsid(found.pid) == os.getpgid(found.pid) == found.pid


def test_usr1_comes_before_the_limit_and_term_at_it(on_local: Site) -> None:
    lines = ("trap 'touch heard' USR1", "while :; do sleep 0.1; done")
    plan = build.plan(build.step(*lines, trains=True), time="2s")
    on_local.start(plan)
    found = on_local.until_over(plan, seconds=20)
    assert (on_local.root / "run/heard").exists()
    assert found.state is State.FAILED
    assert "time limit" in found.reason


def test_saving_at_the_signal_is_waiting(on_local: Site) -> None:
    lines = ("trap 'exit 75' USR1", "while :; do sleep 0.1; done")
    plan = build.plan(build.step(*lines, trains=True), time="2s")
    on_local.start(plan)
    assert on_local.until(plan, "waiting", seconds=20).exit_code == 75


def test_nothing_of_a_job_stays_behind(on_local: Site) -> None:
    plan = build.plan(build.step("sleep 543 &", "true"))
    on_local.start(plan)
    on_local.until_over(plan)

    def left() -> list[str]:
        found = subprocess.run(("pgrep", "-f", "^sleep 543"), capture_output=True, text=True)
        return found.stdout.split()

    wait_for("an empty group", lambda: not left(), 5)


def test_a_killed_runner_is_a_failure_that_says_so(on_local: Site) -> None:
    plan = build.plan(build.step("touch began", "exec sleep 60"))
    job = on_local.start(plan)
    wait_for("start", (on_local.root / "run/began").exists)
    (found,) = local_jobs.find((job,), ())
    os.killpg(found.pid, 9)
    ended = on_local.until_over(plan)
    assert (ended.state, ended.source) == (State.FAILED, "scheduler")
    assert "without a word" in ended.reason


def test_a_number_used_again_is_never_killed(on_local: Site) -> None:
    plan = build.plan(build.step("true"))
    job = on_local.start(plan)
    on_local.until_over(plan)
    wait_for("its process to go", lambda: not next(local_jobs.find((job,), ())).alive)
    other = subprocess.Popen(("sleep", "60"), start_new_session=True)
    try:
        path = next(local_jobs.find((job,), ())).file("job")
        lines = path.read_text().splitlines()
        path.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        on_local.cancel(job)
        time.sleep(0.2)
        assert other.poll() is None
        assert on_local.status(plan).state is State.DONE
    finally:
        other.kill()
        other.wait()


def test_a_job_that_ignores_term_is_killed(on_local: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_jobs, "GRACE_SECONDS", 0.5)
    plan = build.plan(build.step("trap '' TERM", "touch began", "while :; do sleep 0.1; done"))
    job = on_local.start(plan)
    wait_for("start", (on_local.root / "run/began").exists)
    on_local.cancel(job)
    assert on_local.until_over(plan).state is State.CANCELLED
    (found,) = local_jobs.find((job,), ())
    assert not found.alive


def test_the_state_folder_is_private(on_local: Site) -> None:
    plan = build.plan(build.step("true"))
    on_local.start(plan)
    on_local.until_over(plan)
    folder = local_jobs.folder()
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


@pytest.mark.parametrize("ident", ["../../etc/passwd", "", "*", "a/b"])
def test_an_id_is_never_a_path(on_local: Site, ident: str) -> None:
    assert list(on_local.query((ident,), ())) == []


def test_bash_is_clean() -> None:
    needs("shellcheck", shutil.which("shellcheck") is not None, "shellcheck is not installed")
    here = Path(local_jobs.__file__).parent
    scripts = [*here.glob("*.sh"), *(Path(__file__).parents[1] / "rig").glob("*.sh")]
    assert len(scripts) >= 4
    done = subprocess.run(("shellcheck", *map(str, scripts)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
