"""What is said about the mistakes that strangers made first, as text to paste."""

from __future__ import annotations

import pytest

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.run import Resources
from hpctrain.runfile.facts import load_facts
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.layers.source import read_run
from hpctrain.runfile.load import structure_run
from hpctrain.runfile.reading.text import parse_toml
from hpctrain_plugins.trainers import trl
from hpctrain_trl.settings import FIELDS
from tests.runfile.conftest import DATA, KNOWN, OPTIONS, Project

TRL = {**OPTIONS, ("train", "trl"): trl.Options}


def refused(project: Project, text: str) -> Problem:
    """The one problem of this run file, read with the real trainer's options."""
    project.write(f'name = "x"\ncluster = "frontier"\n{text}')
    raw = read_run(environ=project.environ, start=project.path)
    facts = load_facts(DATA / "cluster.toml", settings=raw.settings)
    with pytest.raises(ConfigError) as caught:
        structure_run(raw, facts.run_tiers, options=TRL, known_names=KNOWN)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("max_steps = 200", "[train.trl]\nmax_steps = 200"),
        ("lr = 1e-4", "[train.trl]\nlearning_rate = 0.0001"),
        ('method = "lora"', '[train.trl]\nmethod = "lora"'),
    ],
)
def test_a_key_of_the_trainer_one_table_too_high(project: Project, line: str, hint: str) -> None:
    problem = refused(project, f'[train]\nuse = "trl"\n{line}\n')
    assert problem.message == f'unknown key "{line.split()[0]}"; it belongs in [train.trl]'
    assert problem.hint == hint


def test_a_key_of_every_trainer_one_table_too_low(project: Project) -> None:
    problem = refused(project, '[train]\nuse = "trl"\n[train.trl]\nuse = "nemo"\n')
    assert problem.message == 'unknown key "use"; it belongs in [train]'
    assert problem.hint == '[train]\nuse = "nemo"'


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("lr", "learning_rate"),
        ("epochs", "num_train_epochs"),
        ("batch_size", "per_device_train_batch_size"),
        ("seq_len", "max_length"),
        ("max_step", "max_steps"),
    ],
)
def test_the_name_that_other_tools_use(project: Project, key: str, meant: str) -> None:
    problem = refused(project, f'[train]\nuse = "trl"\n[train.trl]\n{key} = 1\n')
    assert problem.hint.split(", ")[0] == meant


def test_no_name_stands_for_two_keys() -> None:
    names = [name for field in FIELDS.values() for name in field.metadata.get("also", ())]
    assert len(set(names)) == len(names)
    assert not set(names) & set(FIELDS)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("[resource]\nnodes = 1\n", "[resources]"), ("[environment.packages_]\nx = 1\n", "")],
)
def test_a_mistyped_table(project: Project, text: str, hint: str) -> None:
    assert hint in refused(project, text).hint


def test_a_mistyped_key_is_no_table(project: Project) -> None:
    assert refused(project, "[resources]\nnode = 1\n").hint == "nodes"


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("1 hour", 'time = "1h"'),
        ("90 minutes", 'time = "1h30m"'),
        ("1.5h", 'time = "1h30m"'),
        ("2 days and 4 hours", 'time = "2d04h"'),
        ("1 fortnight", 'time = "90m"      also "1:30:00", "2d"'),
        ("1 hourglass", 'time = "90m"      also "1:30:00", "2d"'),
    ],
)
def test_a_time_in_words(said: str, hint: str) -> None:
    _, (fault,) = Strict()({"time": said}, Resources)
    assert fault.problem(None).hint == hint


def test_python_writes_true_otherwise() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_toml("packing = True\n", "run.toml")
    assert caught.value.problems[0].hint == "packing = true"


def test_a_program_in_a_word_belongs_in_a_file() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_toml('[train.command]\nargv = ["python", "-c", "a\\nb"]\n', "run.toml")
    assert "program in a file" in caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('model = "org/x"', 'model = { hub = "org/x" }'),
        ('model = "gpt2"', 'model = { hub = "gpt2" }'),
        ('data = "https://example.org/a.jsonl"', 'data = { url = "https://example.org/a.jsonl" }'),
        ('code = "git+https://x.org/y@v1"', 'code = { git = "https://x.org/y", rev = "v1" }'),
        ('data = "./a.jsonl"', 'data = { path = "./a.jsonl" }'),
        ('data = "what is this"', ""),
        ("data = 3", ""),
    ],
)
def test_an_asset_that_is_a_string_is_offered_as_a_table(project: Project, line: str, hint: str) -> None:
    assert refused(project, f"[assets]\n{line}\n").hint == hint


@pytest.mark.parametrize(
    ("packages", "hint"),
    [
        ('["torch 2.9.0"]', '"torch==2.9.0"'),
        ('["git+https://x.org/y.git@main#egg=y"]', '{ git = "https://x.org/y.git", rev = "main" }'),
        ('["./mylib"]', '{ path = "./mylib" }'),
        ('{ torch = "2.9.0" }', 'packages = ["torch==2.9.0"]'),
        ('{ torch = "latest" }', 'packages = ["trl==0.23.1"]'),
        ('"trl"', 'packages = ["trl"]'),
    ],
)
def test_packages_as_other_tools_write_them(project: Project, packages: str, hint: str) -> None:
    assert refused(project, f"[environment]\npackages = {packages}\n").hint == hint


def test_a_key_of_an_asset_that_names_no_origin_lists_them(project: Project) -> None:
    problem = refused(project, '[assets]\nmodel = { repo = "org/x" }\n')
    assert problem.hint == "hub"
    assert problem.notes == ("one of hub, url, git, path, command or use is needed",)
    assert not refused(project, '[assets]\nmodel = { hub = "org/x", splitt = "train" }\n').notes


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('rev = "main"', "code.rev"),  # a table that may be left out has keys too
        ("[resources]\ntme = { hours = 1 }", "time"),  # a duration is no table of its own
    ],
)
def test_the_nearest_key_is_looked_for_by_what_a_table_may_hold(
    project: Project, text: str, hint: str
) -> None:
    assert refused(project, f"{text}\n").hint == hint
