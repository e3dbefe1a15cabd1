"""Code that no commit holds: it trains, and plan, check and record say so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from hpctrain.model.plan import CodeState
from hpctrain.session import Session

RUN = """
name = "mine"
cluster = "local"
[resources]
nodes = 1
time = "5m"
[environment]
use = ""
[code]
path = "src"
[train]
use = "command"
[train.command]
argv = ["cat", "kept", "new"]
ranks = "once"
"""


def git(folder: Path, *words: str) -> str:
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    return subprocess.run(
        ["git", *me, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a run file and code, all of it committed."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/kept").write_text("kept\n")
    (tmp_path / "src/gone").write_text("gone\n")
    (tmp_path / "run.toml").write_text(RUN)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def session(folder: Path) -> Session:
    home = str(folder / ".git/home")  # what a run writes is no change
    return Session(folder / "run.toml", environ={"PATH": "/usr/bin:/bin", "HOME": home, "USER": "me"})


def edited(folder: Path) -> None:
    """One file changed, one gone, one new, one outside the code."""
    (folder / "src/kept").write_text("changed\n")
    (folder / "src/gone").unlink()
    (folder / "src/new").write_text("new\n")
    (folder / "notes").write_text("not code\n")


def test_a_clean_tree_is_known_by_its_commit(folder: Path) -> None:
    one = session(folder)
    assert one.code_state() == CodeState(commit=git(folder, "rev-parse", "HEAD"), changed=0)
    assert one.check_files() == ()


def test_a_dirty_tree_is_named_and_trains_as_it_is(folder: Path) -> None:
    commit = git(folder, "rev-parse", "HEAD")
    edited(folder)
    one = session(folder)
    assert one.survey().code == CodeState(commit=commit, changed=3)
    (problem,) = one.check_files()
    assert (problem.code, problem.fatal) == ("dirty-tree", False)
    assert problem.message.startswith(f"src: 3 files changed since commit {commit[:8]}")
    run = one.submit()
    run.wait(timeout=60)
    assert run.log() == ["changed", "new"]
    created = json.loads((run.directory.path / "record.jsonl").read_text().splitlines()[0])
    assert created["code"] == {"commit": commit, "changed": 3}


def test_a_commit_is_no_other_plan(folder: Path) -> None:
    """The digest names the content, whoever committed it."""
    edited(folder)
    digest = session(folder).plan().digest
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "more")
    assert session(folder).plan().digest == digest


def test_a_folder_without_a_repository_is_not_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").rename(folder / "git")
    one = session(folder)
    monkeypatch.setattr("hpctrain.run.system.tools.Tools.run", lambda *_, **__: pytest.fail("git was asked"))
    assert one.code_state() is None


def test_programs_that_a_repository_names_are_not_started(folder: Path) -> None:
    """Whoever wrote `.git/config` of a copied folder runs nothing here."""
    trap = folder / ".git/trap"
    trap.write_text(f"#!/bin/sh\ntouch {folder}/.git/sprung\n")
    trap.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(trap))
    edited(folder)
    state = session(folder).code_state()
    assert state is not None
    assert state.changed == 3
    assert not (folder / ".git/sprung").exists()


@pytest.mark.parametrize("broken", ["HEAD", "config"])
def test_a_broken_repository_hides_no_plan(folder: Path, broken: str) -> None:
    (folder / ".git" / broken).write_text("[nonsense\n")
    assert session(folder).code_state() is None
