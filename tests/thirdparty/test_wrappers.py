"""What a site and a framework put around hpctrain, and run: rules for all users, an environment, a sweep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.patience import wait_for
from tests.thirdparty import scratch
from tests.thirdparty.polaris import Alice
from tests.thirdparty.scratch import HERE, Scratch

SITE = """\
[[source]]
id      = "acme"
title   = "decided by Acme's support team"
checked = "2026-11-23"
sure    = "inferred"

[policy]
source     = "acme"
account    = "required"
max_nodes  = 4
submit_env = ["ACME_ROOT"]

[defaults.resources]
account = "acme-shared"
"""
RUN = """\
name    = "wrapped"
cluster = "polaris"

[resources]
nodes = 2
time  = "10m"
queue = "debug"

[environment]
use    = "venv"
python = "/usr/bin/python3"

[train]
use = "command"

[train.command]
argv    = {argv}
ranks   = "once"
metrics = 'step (?P<step>\\d+) loss (?P<loss>[\\d.]+)'
"""
WHO = ["bash", "-c", "echo $ACME_ENV; hello-from-acme"]
PRINTS = 'printf "step %d loss %.3f\\n", step, (1 - ENVIRON["LR"]) ^ step'
STEPS = f"BEGIN {{ for (step = 1; step <= 5; step++) {PRINTS} }}"
DESCENT = ["awk", f'{STEPS} END {{ exit ENVIRON["LR"] == 0.7 }}', "/dev/null"]
"""A rate of 0.7 ends badly."""


@pytest.fixture(scope="module")
def acme(installed: Scratch) -> Iterator[Scratch]:
    """Acme's rules and its framework, installed for everybody."""
    installed.install(scratch.wheel(HERE / "acme-wrap", installed.folder / "wheels"))
    yield installed
    installed.pip("uninstall", "-y", "acme-wrap")


@pytest.fixture
def alice(acme: Scratch, on_polaris: Alice) -> Alice:
    """A user of Acme's: the site's file, and the folder with its own environment."""
    root = on_polaris.folder / "acme"
    (root / "bin").mkdir(parents=True)
    (root / "bin/hello-from-acme").write_text("#!/bin/sh\necho hello from acme\n")
    (root / "bin/hello-from-acme").chmod(0o755)
    (on_polaris.folder / "site.toml").write_text(SITE)
    site = str(on_polaris.folder / "site.toml")
    return attrs.evolve(on_polaris, variables={"HPCTRAIN_SITE": site, "ACME_ROOT": str(root)})


def write(user: Alice, argv: list[str]) -> None:
    (user.folder / "run.toml").write_text(RUN.format(argv=json.dumps(argv)))


def over(user: Alice) -> dict[str, Any]:
    """The newest run, once it has ended."""
    found: dict[str, Any] = {}

    def ended() -> bool:
        found.update(user.json("status", "wrapped"))
        return found["state"] in ("done", "failed", "cancelled")

    wait_for("the end", ended, 90)
    return found


def test_every_job_is_charged_to_the_sites_account(alice: Alice) -> None:
    write(alice, ["true"])
    alice("submit", "run.toml")
    (job,) = alice.standin.jobs.values()
    assert job["Account_Name"] == "acme-shared"
    other = alice("submit", "run.toml", "--account", "mine", code=2)
    assert "error[acme-account]: Acme's jobs are charged to acme-shared, not to mine" in other
    assert "help: --set resources.account=acme-shared" in other
    assert len(alice.standin.jobs) == 1


def test_the_nodes_of_all_users_together_are_capped(alice: Alice) -> None:
    write(alice, ["sleep", "300"])
    alice("submit", "run.toml")
    with alice.standin.folder.changing() as state:
        (row,) = state["jobs"].values()
        row["Job_Owner"] = "bob@login"  # as if somebody else of the project had been first
    alice("submit", "run.toml")
    refused = alice("submit", "run.toml", code=2)
    assert "error[node-limit]: a project may hold 4 nodes on polaris: 4 are held or queued" in refused
    assert "bob (1)" in refused
    loosened = alice("check", "run.toml", "--set", "policy.max_nodes=40", code=2)
    assert "error[policy]" in loosened
    assert len(alice.standin.jobs) == 2


def test_the_sites_environment_stands_in_for_every_venv(alice: Alice) -> None:
    write(alice, WHO)
    alice("submit", "run.toml")
    found = over(alice)
    log = (Path(found["path"]) / "logs/train.log").read_text()
    assert found["state"] == "done", log
    assert log.splitlines()[-2:] == [alice.variables["ACME_ROOT"], "hello from acme"]
    assert [row["step"] for row in found["steps"]] == ["train"], "nothing was built"
    assert "hooks:acme_rules" in alice("plan", "run.toml", "--explain", "ACME_ENV")


def test_another_environment_than_a_venv_is_left_alone(alice: Alice) -> None:
    write(alice, ["true"])
    ready = ("--set", "environment.use=ready", "--set", 'environment.ready.prefix="/opt/env"')
    said = alice("plan", "run.toml", *ready, "--explain", "PATH")
    assert "hooks:acme_rules" not in said


def test_a_framework_sweeps_with_sessions(alice: Alice) -> None:
    write(alice, DESCENT)
    (alice.folder / "site.toml").write_text(SITE.replace("max_nodes  = 4", "max_nodes  = 8"))
    said = alice.run("python", "-m", "acme_sweep", "run.toml", "LR", "0.1", "0.5", "0.9", "0.7")
    assert [line.split()[0] for line in said.splitlines()] == ["0.9", "0.5", "0.1"]
    assert float(said.splitlines()[1].split()[1]) == 0.031
    assert len(alice.standin.jobs) == 4
