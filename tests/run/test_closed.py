"""Folders without rights are told before anything is queued, with their role, the account and the key."""

from __future__ import annotations

import os
from pathlib import Path

from hpctrain.model.plan import Survey
from hpctrain.run.prepare.survey import closed
from hpctrain.session import Session
from tests.run.users import USER, acting_as
from tests.run.users import project as project

RUN = """
name = "r"
cluster = "local"
[resources]
nodes = 1
time = "5m"
account = "nn1"
[environment]
use = ""
[assets]
seed = { command = ["true"] }
[train]
use = "command"
[train.command]
argv = ["cat", "{assets.seed}"]
"""


def session(project: Path, **roles: Path) -> Session:
    (project / "run.toml").write_text(RUN)
    lines = "".join(f'{role} = "{path}"\n' for role, path in roles.items())
    (project / "settings.toml").write_text(f"[cluster.local]\n{lines}")
    environ = {"HOME": str(project), "USER": "me", "HPCTRAIN_SETTINGS": str(project / "settings.toml")}
    return Session(project / "run.toml", environ=environ)


def test_what_may_not_be_written_is_named_with_its_key(project: Path) -> None:
    theirs = project / "theirs"
    theirs.mkdir()
    theirs.chmod(0o755)
    mine = project / "mine"
    mine.mkdir()
    os.chown(mine, USER, -1)
    one = session(project, runs=theirs / "me/runs", checkpoints=mine, assets=theirs)
    plan, binding = one.plan(), one.binding

    def told(survey: Survey) -> dict[str, str]:
        with acting_as(USER):
            return {p.where: f"{p.message} | {p.hint} | {p.notes}" for p in closed(plan, binding, survey)}

    fresh = Survey(is_on_cluster=True)
    assert told(fresh)["storage.runs"] == (
        f"runs of local lie in {theirs}/me/runs, and you may not write to {theirs}"
        " | [cluster.local] runs = \"/path\"      (in settings) | ('the account is nn1',)"
    )
    assert {*told(fresh)} == {"storage.runs", "storage.assets"}
    # What a colleague made is used where it lies.
    assert {*told(Survey(is_on_cluster=True, artifact_exists={"seed": True}))} == {"storage.runs"}
