"""A token lies on the disk only as long as a job may read it."""

from __future__ import annotations

import os
import signal
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


def test_of_a_job_that_was_killed_it_goes_with_the_next_look(here: Product) -> None:
    path = submitted(here, small('echo $PPID >"$HPC_RUN"/began; sleep 300'))
    (job,) = here.json("status", "small")["steps"]
    os.killpg(os.getpgid(int((path / "began").read_text())), signal.SIGKILL)
    wait_for("the end", lambda: here.state("small") in ("failed", "cancelled"))
    assert job["job"]
    assert "are still on the disk: hpctrain cancel small/1" in here("status", "small").stdout
    here("cancel", "small")
    assert on_disk(here) == []
    assert "on the disk" not in here("status", "small").stdout


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
