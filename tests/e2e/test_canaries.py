"""A walk with a secret in every place where users have one: each token reaches its task, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.conftest import needs
from tests.e2e.canaries import SECRETS, Canaries
from tests.e2e.product import Product, small
from tests.e2e.test_on_slurm import on_rig, until
from tests.rig.conf import USERS
from tests.rig.slurm import Rig


def whole(path: Path) -> Iterator[Path]:
    yield path
    yield from path.rglob("*")


def with_secrets(text: str) -> str:
    return text.replace("\n\n[resources]", SECRETS + "\n[resources]", 1)


def with_code(text: str, user: Product) -> str:
    """The same run with the user's own code, whose repository remembers a login."""
    return f'{text}\n[code]\npath = "{user.home}/code"\n'


def walk(user: Product, canaries: Canaries, text: str, broken: str) -> list[str]:
    """All that a user prints of a run that ends well, of one that fails and of one that is cancelled."""
    printed: list[str] = []

    def told(*words: str, code: int | None = 0) -> None:
        done = user(*words, code=code)
        printed.extend((done.stdout, done.stderr))

    user.write(text)
    for words in (("check",), ("plan", "--json"), ("plan", "--full"), ("lock",), ("diff", "--on", "local")):
        told(*words, code=None)
    told("submit", "--wait", "--debug")
    log = user("logs", "small").stdout
    assert canaries.received(log), log
    for words in (("status", "--json"), ("logs", "--json"), ("diagnose",), ("metrics",), ("runs", "--json")):
        told(*words, code=None)
    told("eject", "--out", "ejected")
    user.write(broken)
    told("submit", "--wait", "-v", code=8)
    told("diagnose", code=None)
    told("continue", "--debug", code=None)
    told("cancel")
    return printed


def test_on_this_computer(here: Product) -> None:
    canaries = Canaries()
    user = canaries.given_to(here)
    text = with_code(with_secrets(small(canaries.program())), user)
    with canaries.watched() as command_lines:
        printed = walk(user, canaries, text, with_code(with_secrets(small("exit 3")), user))
        assert list((user.home / ".local/share/hpctrain/runs/small").glob("1-*/source/train.sh"))
        user.write(with_secrets(small("sleep 300")))
        user("submit")
        assert {name.split()[0] for name in canaries.leaks(user)} == {
            "huggingface",
            "netrc",
            "file",
            "variable",
        }
        user("cancel")
    assert canaries.leaks(user, *printed) == []
    assert command_lines == set()


def test_every_command_line_of_a_run(here: Product, tmp_path: Path) -> None:
    """Also of programs that are over before anybody could have looked."""
    needs("strace", shutil.which("strace") is not None, "strace is not installed")
    canaries = Canaries()
    calls = tmp_path / "calls"
    user = canaries.given_to(here)
    user = attrs.evolve(user, before=("strace", "-f", "-e", "execve", "-s", "100000", "-o", str(calls)))
    user.write(with_secrets(small("true")))
    user("submit", "--wait")
    text = calls.read_text()
    assert "runner.sh" in text
    assert [name for name, value in canaries.values.items() if value in text] == []


def test_traced(here: Product) -> None:
    """What plugins answer is printed whole, and holds no token."""
    canaries = Canaries()
    user = canaries.given_to(here)
    user.write(with_secrets(small("true")))
    done = user("submit", "--wait", "--debug", HPCTRAIN_TRACE="1")
    assert "render_job" in done.stderr
    assert canaries.leaks(user, done.stdout, done.stderr) == []


@pytest.mark.slurm
def test_on_a_slurm(alice: Product, slurm: Rig) -> None:
    canaries = Canaries()
    user = canaries.given_to(alice)
    for path in whole(alice.home):
        os.chown(path, USERS["alice"], USERS["alice"])
    text = with_secrets(on_rig(canaries.program()))
    with canaries.watched() as command_lines:
        printed = walk(user, canaries, text, with_secrets(on_rig("exit 3")))
        user.write(with_secrets(on_rig("sleep 300")))
        user("submit")
        until(user, "small", "running")
        jobs = slurm.run("scontrol", "show", "job", "-dd").stdout + slurm.run("squeue", "-o", "%all").stdout
        user("cancel", "small")
    assert "JobId=" in jobs
    assert canaries.leaks(user, jobs, *printed) == []
    assert command_lines == set()
