"""A token lies on the disk only as long as a job may read it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.product import Product, hidden_in, small
from tests.e2e.test_on_slurm import on_rig, until
from tests.patience import wait_for
from tests.rig.slurm import Rig

CANARY = "c4nary" * 6
SECRETS = '\nsecrets = ["wandb"]\n'


def with_token(text: str) -> str:
    """A run file whose steps read the token."""
    return text.replace("\n\n[resources]", SECRETS + "\n[resources]", 1)


def on_disk(user: Product) -> list[str]:
    """The files of the user that hold the token."""
    return hidden_in(CANARY, [user.home, user.folder])


def submitted(user: Product, text: str) -> Path:
    """The directory of a run that has begun."""
    user.write(with_token(text))
    user("submit", WANDB_API_KEY=CANARY)
    path = user.run_path("small")
    wait_for("the task", (path / "began").exists)
    assert on_disk(user)
    return path


@pytest.mark.parametrize("script", ["sleep 300", "trap '' TERM; sleep 300 & wait; wait"])
def test_it_goes_when_the_run_is_cancelled(here: Product, script: str) -> None:
    submitted(here, small(f'[[ $WANDB_API_KEY == c4nary* ]] && touch "$HPC_RUN"/began; {script}'))
    here("cancel", "small")
    assert on_disk(here) == []


def killed(user: Product) -> Path:
    """A run whose job was killed at once, and left its token."""
    path = submitted(user, small('echo $PPID >"$HPC_RUN"/began; sleep 300'))
    os.killpg(os.getpgid(int((path / "began").read_text())), signal.SIGKILL)
    wait_for("the end", lambda: user.state("small") in ("failed", "cancelled"))
    return path


@pytest.mark.parametrize("words", [("cancel", "small"), ("continue", "small"), ("doctor", "local")])
def test_of_a_job_that_was_killed_it_goes_with_the_next_look(here: Product, words: tuple[str, ...]) -> None:
    killed(here)
    assert "are still on the disk: hpctrain cancel small/1" in here("status", "small").stdout
    done = here(*words, code=None)
    if words[0] == "doctor":
        assert "tokens: those of small/1 (train) were still on the disk, and are deleted" in done.stderr
    assert on_disk(here) == []
    assert "on the disk" not in here("status", "small").stdout
    here("cancel", "small", code=None)


def test_doctor_leaves_the_token_of_a_job_that_runs(here: Product) -> None:
    submitted(here, small('touch "$HPC_RUN"/began; sleep 300'))
    before = on_disk(here)
    assert "deleted" not in here("doctor", "local", code=None).stderr
    assert on_disk(here) == before
    here("cancel", "small")


def test_doctor_names_the_tokens_of_a_run_that_is_gone(here: Product) -> None:
    path = killed(here)
    shutil.rmtree(path)
    told = here.json("doctor", "local", code=7)
    (finding,) = [row for row in told["findings"] if row["area"] == "tokens"]
    assert "small-1-" in finding["found"]
    assert finding["todo"].startswith("rm -r ")
    assert on_disk(here)
    subprocess.run(["bash", "-c", finding["todo"].partition("      ")[0]], check=True)
    assert on_disk(here) == []
    assert not [row for row in here.json("doctor", "local", code=None)["findings"] if row["area"] == "tokens"]


def test_a_submission_that_is_waited_for_leaves_none(here: Product) -> None:
    here.write(with_token(small("kill -9 $PPID")))
    here("submit", "--wait", WANDB_API_KEY=CANARY, code=8)
    assert on_disk(here) == []


@pytest.mark.parametrize("script", ["sleep 300", "trap 'exit 75' USR1; sleep 300 & wait"])
def test_it_goes_at_the_time_limit(here: Product, script: str) -> None:
    """With a job that saves when it is warned, and with one that only ends."""
    text = small(f'touch "$HPC_RUN"/began; {script}').replace('"5m"', '"6s"')
    submitted(here, text)
    wait_for("the end", lambda: here.state("small") not in ("queued", "running"))
    assert on_disk(here) == []


@pytest.mark.slurm
def test_it_goes_when_somebody_ends_the_job_without_us(alice: Product, slurm: Rig) -> None:
    submitted(alice, on_rig('touch "$HPC_RUN"/began; sleep 300'))
    (job,) = alice.json("status", "small")["steps"]
    slurm.run("scancel", job["job"])
    until(alice, "small", "cancelled")
    wait_for("the end of its script", lambda: on_disk(alice) == [])


@pytest.mark.slurm
def test_a_job_that_slurm_refuses_or_never_starts_leaves_none(alice: Product) -> None:
    alice.write(with_token(on_rig("true", '\n[resources.ask]\nslurm = ["--constraint=nonsense"]\n')))
    alice("submit", WANDB_API_KEY=CANARY, code=5)
    assert on_disk(alice) == []
    alice.write(with_token(on_rig("sleep 300", '\n[resources.ask]\nslurm = ["--hold"]\n')))
    alice("submit", WANDB_API_KEY=CANARY)
    until(alice, "small", "queued")
    assert on_disk(alice)
    alice("cancel", "small")
    assert on_disk(alice) == []
