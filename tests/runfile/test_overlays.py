"""`[on.X]` is read strictly on every cluster, not only on X."""

from __future__ import annotations

import pytest

from tests.runfile.conftest import Project

AT = "[on.isambard.resources]\ngpus = 8\n"


@pytest.mark.parametrize(
    ("table", "code", "where", "hint"),
    [
        ("[on.isambard.resorces]\ngpus = 8", "unknown-key", "resorces", "[resources]"),
        ("[on.isambard.resources]\ngpu = 8", "unknown-key", "resources.gpu", "gpus"),
        ("[on.isambard.resources]\ntime = 90", "wrong-type", "resources.time", ""),
        ("[on.isambard.environment]\npakages = []", "unknown-key", "environment.pakages", "packages"),
        ("[on.isambard.environment.vnev]\nsystem = true", "unknown-key", "environment.vnev", "venv"),
        ("[on.isambard.assets.model]\nhubb = 'a/b'", "unknown-key", "assets.model.hubb", "hub"),
        ("[on.isambrad.resources]\ngpus = 8", "unknown-name", "on.isambrad", "[on.isambard]"),
        ("[on.Isambard.resources]\ngpus = 8", "unknown-name", "on.Isambard", "[on.isambard]"),
        ("[on.lumi.resorces]\ngpus = 8", "unknown-key", "resorces", "[resources]"),
    ],
)
def test_a_slip_is_refused_on_another_cluster(
    project: Project, table: str, code: str, where: str, hint: str
) -> None:
    project.replace(AT, f"{table}\n")
    (problem,) = (p for p in project.problems() if p.fatal)
    assert (problem.code, problem.where) == (code, where)
    assert hint in problem.hint
    assert problem.span is not None
    line = (project.path / "run.toml").read_text().splitlines()[problem.span.line - 1]
    assert line == problem.span.text
    assert line in table


def test_all_mistakes_are_told_at_once(project: Project) -> None:
    project.replace(AT, "[on.isambard.resorces]\ngpus = 8\n")
    project.replace("nodes = 2", "noodes = 2")
    assert [p.where for p in project.problems()] == ["resources.noodes", "resorces"]


@pytest.mark.parametrize("name", ["lumi", "isambard3", "leonardo-dcgp"])
def test_a_cluster_that_is_not_here_is_a_warning(project: Project, name: str) -> None:
    theirs = f"[on.{name}.train]\nuse = 'theirs'\ntheirs.rate = 1\n[on.{name}.environment.podman]\nx = 1\n"
    project.replace("[environment.venv]\nsystem = true", "")
    project.replace(AT, theirs)
    (warning,) = project.load()[0].problems
    assert (warning.code, warning.fatal, warning.where) == ("unknown-name", False, f"on.{name}")


def test_what_another_cluster_would_be_told_is_its_own_matter(project: Project) -> None:
    """A mistake of the file itself is told once, and a `--set` is for this cluster."""
    project.replace(AT, "[on.isambard.assets.model]\nrevision = 'main'\n[on.isambard]\nsecrets = []\n")
    project.replace("nodes = 2", "nodes = 0")
    assert [p.where for p in project.problems("resources.time='1h'")] == ["resources.nodes"]
