"""Run directories below folders that somebody else made: nothing of another user's is read or executed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hpctrain.errors import IntegrityError
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.live import graph_of
from hpctrain_job.files import trust
from tests.run.users import GROUP, MALLORY, USER, acting_as, run_as
from tests.run.users import project as project

GRAPH = """{"v": 1, "name": "demo", "cluster": "local", "scheduler": "local",
"digest": "d", "poll_seconds": 1,
"account": "", "secrets": [], "submit_env": [],
"roots": {}, "user": "", "python": "",
"nodes": []%s}"""
DIGEST = "4f1c9a2e" * 8


def submitted(runs: Path, owners: str = "", accepted: trust.Accepted = trust.NOBODY_ELSE) -> RunDirectory:
    contents = {"plan.json": "{}", "graph.json": GRAPH % owners}
    return RunDirectory.create(runs, "demo", DIGEST, contents, accepted)


@pytest.mark.parametrize("mode", [0o2777, 0o2770, 0o3777, 0o3770])
def test_no_run_is_made_below_a_folder_of_somebody_else(project: Path, mode: int) -> None:
    above = project / "victim"
    with acting_as(MALLORY):
        above.mkdir()
        above.chmod(mode)
    with acting_as(USER), pytest.raises(IntegrityError, match=rf"victim belongs to {MALLORY}") as refused:
        submitted(above / "hpctrain/runs")
    assert (refused.value.exit_code, refused.value.problems[0].code) == (7, "not-trusted")
    assert list(above.iterdir()) == []


ABOVE = {
    "a folder two above": "mkdir -p victim/hpctrain/runs; chmod 777 victim/hpctrain/runs",
    "a link to a folder of hers": "mkdir -m 777 hers; ln -s hers victim",
    "a link to a folder of the user": "ln -s own victim",
    "a link to a folder of root": "ln -s /var/tmp victim",
    "a folder that is sticky": "mkdir victim; chmod 3777 victim",
    "a folder that she alone may write": "mkdir -p victim/hpctrain; chmod 755 victim victim/hpctrain",
    "a chain of links": "mkdir -m 777 hers; ln -s hers one; ln -s one victim",
    "a link out of the project": 'ln -s "$PWD/../project/own" victim',
    "the folder of the run's name": "mkdir -p victim/hpctrain/runs/demo; chmod -R 777 victim",
    "a folder with a run of hers": (
        "run=victim/hpctrain/runs/demo/1-aa; mkdir -p $run; echo {} >$run/graph.json"
    ),
}


@pytest.mark.parametrize("above", ABOVE)
def test_no_run_is_made_in_what_she_made_first(project: Path, above: str) -> None:
    with acting_as(USER):
        (project / "own").mkdir()
    done = run_as(MALLORY, ["bash", "-ec", ABOVE[above]], project)
    assert done.returncode == 0, done.stderr
    before = sorted(project.rglob("*"))
    with acting_as(USER), pytest.raises(IntegrityError, match=f"belongs to {MALLORY}"):
        submitted(project / "victim/hpctrain/runs")
    assert sorted(project.rglob("*")) == before


def test_an_accepted_owner_may_have_made_the_folder_above(project: Path) -> None:
    above = project / "victim"
    with acting_as(MALLORY):
        above.mkdir()
        above.chmod(0o2770)
    with acting_as(USER):
        accepted = trust.Accepted((str(MALLORY),))
        run = submitted(above / "runs", f', "owners": {{"runs": ["{MALLORY}"]}}', accepted)
        assert graph_of(run).owners == {"runs": (str(MALLORY),)}


def test_a_run_that_somebody_put_in_its_place_is_not_read(project: Path) -> None:
    with acting_as(USER):
        run = submitted(project / "victim")
        assert graph_of(run).name == "demo"
    with acting_as(MALLORY):
        (project / "victim").rename(project / ".old")  # the site's folder lets its group do that
        fake = project / "victim/demo" / run.path.name
        fake.mkdir(parents=True)
        (fake / "plan.json").write_text("{}")
        (fake / "graph.json").write_text(GRAPH % "")
        for folder in (fake, fake.parent, fake.parent.parent):
            folder.chmod(0o755)
    with acting_as(USER), pytest.raises(IntegrityError, match=f"belongs to {MALLORY}, not to you"):
        graph_of(RunDirectory.find("demo/1", project / "victim"))


def test_an_own_run_below_a_folder_that_was_swapped_is_not_read(project: Path) -> None:
    with acting_as(USER):
        run = submitted(project / "victim")
    with acting_as(MALLORY):
        (project / "victim").rename(project / ".old")
        (project / "victim").mkdir()
        (project / "victim").chmod(0o777)
    shutil.move(project / ".old/demo", project / "victim/demo")
    with acting_as(USER), pytest.raises(IntegrityError, match=f"victim belongs to {MALLORY}"):
        graph_of(run)


def test_a_folder_that_may_not_be_entered_is_no_bug(project: Path) -> None:
    with acting_as(USER):
        run = submitted(project / "victim")
    os.chown(project / "victim/demo", 0, GROUP)
    with acting_as(USER):
        assert not run.exists()
        assert not run.finished("train")
        with pytest.raises(Exception, match=r"permission denied|belongs to"):
            graph_of(run)
