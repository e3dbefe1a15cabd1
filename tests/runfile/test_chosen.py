"""Which plugins a run names: the choice that is implied, and what is named for nothing."""

from __future__ import annotations

import pytest

from hpctrain.runfile.chosen import technologies
from hpctrain.runfile.layers.source import read_run
from hpctrain.runfile.load import merged_run
from tests.runfile.conftest import Project


def test_technologies_are_known_before_structuring(project: Project) -> None:
    project.replace("nodes = 2", 'nodes = "wrong"')
    raw = read_run(environ=project.environ, start=project.path)
    assert technologies(merged_run(raw))["train"] == "trl"


def test_a_single_table_is_the_choice(project: Project) -> None:
    raw = read_run(environ=project.environ, start=project.path)
    assert technologies(merged_run(raw)) == {"environment": "venv", "train": "trl"}


def test_a_table_that_is_not_used_is_said(project: Project) -> None:
    """The cluster chooses conda; the run file has a table of venv and no `use`."""
    (warning,) = project.load()[0].problems
    assert (warning.code, warning.fatal, warning.where) == ("unused-table", False, "environment.venv")
    assert warning.message == "[environment.venv] is not used: the cluster's own choice is conda"
    assert warning.span is not None
    assert "[environment.venv]" in warning.span.text


def test_a_table_beside_another_choice_is_said(project: Project) -> None:
    """The file itself says `use`, and has a table of something else alone: a slip of the name."""
    project.replace("[train.trl]\n", "[train.command]\n")
    project.replace("[environment.venv]\nsystem = true", "")
    (warning,) = project.load()[0].problems
    assert (warning.code, warning.fatal, warning.where) == ("unused-table", False, "train.command")
    assert warning.message == '[train.command] is not used: train.use is "trl"'
    assert warning.span is not None
    assert "[train.command]" in warning.span.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[environment.venv]", '[environment.conda]\nchannel = "x"\n\n[environment.venv]'),
        ("[on.isambard.resources]", '[on.isambard.environment]\nuse = "venv"\n\n[on.isambard.resources]'),
        ("[on.frontier.checkpoint]\n", "[on.frontier]\nenvironment.conda.channel = 'x'\ncheckpoint."),
    ],
    ids=["the chosen one has a table", "another cluster uses it", "the table is this cluster's"],
)
def test_tables_for_several_clusters_are_fine(project: Project, old: str, new: str) -> None:
    project.replace("[environment]", '[environment]\nuse = "conda"')
    assert [p.where for p in project.load()[0].problems] == ["environment.venv"]
    project.replace(old, new)
    assert not project.load()[0].problems


def test_who_chooses_over_the_file_knows_its_tables(project: Project) -> None:
    assert not project.load("environment.use='conda'")[0].problems


@pytest.mark.parametrize(("name", "said"), [("slurmm", 1), ("slurm", 0), ("pbs", 0)])
def test_a_misspelt_scheduler_is_said(project: Project, name: str, said: int) -> None:
    """A run file may speak to a scheduler that another site has; only a slip is worth a word."""
    project.replace("[environment.venv]\nsystem = true", "")
    project.replace("[resources]\n", f'[resources]\nask = {{ {name} = ["--exclusive"] }}\n')
    problems = project.load()[0].problems
    assert len(problems) == said
    for warning in problems:
        assert (warning.code, warning.fatal, warning.where) == (
            "unknown-name",
            False,
            f"resources.ask.{name}",
        )
        assert warning.message == f'no scheduler "{name}" reads resources.ask.{name}; "slurm" is one'
        assert (warning.hint, warning.span and warning.span.line) == ("slurm", 5)
