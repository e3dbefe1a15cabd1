"""Where a run file is found, what its paths count from, and what it may read."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError
from hpctrain.runfile.layers.source import read_run
from tests.runfile.conftest import Project, spot


def test_asset_hash_is_checked(project: Project) -> None:
    sha = project.load()[0].run.assets["dataset"].sha256
    project.replace('"data/rows.jsonl"', f'"data/rows.jsonl", sha256 = "{sha}"')
    assert project.load()[0].run.assets["dataset"].sha256 == sha
    (project.path / "data/rows.jsonl").write_text("changed")
    (problem,) = project.problems()
    assert (problem.code, problem.where) == ("hash", "assets.dataset.sha256")


def test_the_same_run_from_two_folders(project: Project, tmp_path: Path) -> None:
    here = project.load()[0].run
    other = tmp_path / "other 'place'"
    project.path.rename(other)
    there = attrs.evolve(project, path=other).load()[0].run
    assert here == there


def test_paths_of_settings_count_from_there(project: Project) -> None:
    project.settings('[run.assets]\nextra = { path = "rows.txt" }\n')
    (problem,) = project.problems()
    assert spot(problem).startswith("settings.toml:2:18")
    (project.home / ".config/hpctrain/rows.txt").write_text("x")
    assert "extra" in project.load()[0].run.assets


def test_file_is_found_upwards(project: Project) -> None:
    below = project.path / "a" / "b"
    below.mkdir(parents=True)
    raw = read_run(environ=project.environ, start=below)
    assert raw.path == project.path / "run.toml"
    (below.parent / ".git").mkdir()
    with pytest.raises(ConfigError) as caught:
        read_run(environ=project.environ, start=below)
    (problem,) = caught.value.problems
    assert problem.message == "no run.toml here or above"


def test_search_ends_at_home(project: Project) -> None:
    (project.home.parent / "run.toml").write_text("name = 'x'")
    (project.path / "run.toml").unlink()
    with pytest.raises(ConfigError, match=r"no run\.toml here or above"):
        read_run(environ=project.environ, start=project.path)


def test_named_file(project: Project) -> None:
    for named, message, hint in (
        ("rnu.toml", f"rnu.toml does not exist in {project.path}", "run.toml"),
        (".", f"{project.path.name} is a folder; a TOML file is needed", "run.toml"),
        ("mylib", "mylib is a folder; a TOML file is needed", ""),
        ("x" * 300, f"{'x' * 300} cannot be read: File name too long", ""),
    ):
        with pytest.raises(ConfigError) as caught:
            read_run(Path(named), environ=project.environ, start=project.path)
        (problem,) = caught.value.problems
        assert problem.message == message
        assert problem.hint.endswith(hint)


def test_nothing_is_written(project: Project) -> None:
    before = {p: p.read_bytes() for p in project.home.rglob("*") if p.is_file()}
    project.load()
    project.problems("rubbish")
    assert before == {p: p.read_bytes() for p in project.home.rglob("*") if p.is_file()}
