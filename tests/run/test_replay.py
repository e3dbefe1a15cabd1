"""Replay is the same run: the lock in a run's directory is all that was asked, whoever plans it and where."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hpctrain import Session
from hpctrain.errors import ConfigError, Problem
from hpctrain.lock import path_of
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.runfile.layers.replay import written
from hpctrain.runfile.reading.toml import loads

RUN = """\
name = "hello"    # the user's own words

[environment]
use = "ready"

[environment.ready]
prefix = "/usr"

[code]
path = "code"

[env]
A = "1"

[train]
use = "command"

[train.command]
argv = ["python3", "train.py"]

[on.frontier.env]
B = "of another cluster"
"""
SETTINGS = """\
account = "alice1"

[run.resources]
time = "7m"

[run.env]
A = "of the settings, and not in force"
C = "of the settings"

[cluster.local.defaults.env]
D = "of the settings for this cluster"

[secrets]
wandb = { file = "~/.wandb-token" }
"""
SETS = ('env.A="2"', 'train.command.argv=["python3", "train.py", "\\"é\\""]')


@pytest.fixture
def alice(tmp_path: Path) -> Path:
    """A project, and settings."""
    project = tmp_path / "alice" / "project"
    (project / "code").mkdir(parents=True)
    (project / "code" / "train.py").write_text("print('trained')\n")
    (project / "run.toml").write_text(RUN)
    (tmp_path / "alice" / "settings.toml").write_text(SETTINGS)
    return project


@pytest.fixture
def bob(tmp_path: Path) -> dict[str, str]:
    """Somebody else, with an account and other defaults."""
    home = tmp_path / "bob"
    home.mkdir()
    text = '[run.env]\nE = "of Bob"\n[run.resources]\ntime = "9m"\n'
    (home / "settings.toml").write_text(f'account = "bob1"\n{text}')
    return _environ(home)


def _environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "USER": home.name, "HPCTRAIN_SETTINGS": str(home / "settings.toml")}


def _asked(project: Path, sets: Sequence[str] = SETS, on: str | None = "local") -> Session:
    return Session(project / "run.toml", on=on, sets=sets, environ=_environ(project.parent))


def _recorded(session: Session) -> Path:
    """The lock in the directory of a run that this session made."""
    session = session.with_pins(session.pins)
    plan = session.plan()
    root = Path(str(session.binding.roots["runs"]))
    return RunDirectory.create(root, plan.run.name, plan.digest, session.files()).path / "run.lock.toml"


def _told(session: Session) -> list[Problem]:
    return [problem for problem in session.plan().problems if problem.code == "replay-differs"]


def test_what_is_recorded_is_the_run_after_settings_and_set(alice: Path) -> None:
    text = _recorded(_asked(alice)).read_text()
    data = loads(text)
    assert text.startswith(RUN.rstrip())
    assert data["replay"]["settings"] == {
        "resources": {"time": "7m"},
        "env": {
            "D": "of the settings for this cluster",
            "A": "of the settings, and not in force",
            "C": "of the settings",
        },
    }
    assert data["replay"]["set"] == {
        "cluster": "local",
        "env": {"A": "2"},
        "train": {"command": {"argv": ["python3", "train.py", '"é"']}},
    }


def test_for_whom_it_was_and_where_tokens_are_is_not_recorded(
    alice: Path, bob: Mapping[str, str], tmp_path: Path
) -> None:
    """Bob's run is charged to Bob, and the mail is his."""
    for settings in (alice.parent / "settings.toml", tmp_path / "bob" / "settings.toml"):
        mail = f'[run.resources]\nmail = "{settings.parent.name}@example.org"'
        settings.write_text(settings.read_text().replace("[run.resources]", mail))
    environ = _environ(alice.parent)
    session = Session(alice / "run.toml", on="frontier", account="alice2", sets=SETS, environ=environ)
    assert session.run.resources.mail == "alice@example.org"
    text = session.files()["run.lock.toml"]
    assert isinstance(text, str)
    assert not [word for word in ("alice1", "alice2", "alice@", "wandb") if word in text]
    (alice / "paper.toml").write_text(text)
    again = Session(alice / "paper.toml", environ=bob)
    assert (again.run.resources.account, again.run.resources.mail) == ("bob1", "bob@example.org")
    assert again.run.env["B"] == "of another cluster"
    assert again.plan().digest == session.plan().digest


@pytest.mark.parametrize("name", ["run.lock.toml", "paper.toml"])
def test_a_copy_anywhere_is_the_same_run(
    alice: Path, bob: Mapping[str, str], tmp_path: Path, name: str
) -> None:
    asked = _asked(alice)
    copy = tmp_path / "elsewhere" / name
    copy.parent.mkdir()
    shutil.copy(_recorded(asked), copy)
    again = Session(copy, environ=bob)
    assert again.plan().digest == asked.plan().digest
    assert again.locked
    assert _told(again) == []
    assert again.run.resources.account == "bob1"
    assert again.loaded.origins["env.A"].layer == "replay"
    line = copy.read_text().splitlines()[again.loaded.origins["env.A"].at - 1]
    assert line == 'env.A = "2"'


def test_in_the_directory_of_the_run_it_is_the_same_run(alice: Path, bob: Mapping[str, str]) -> None:
    """A run's directory has a folder `code` of its own."""
    asked = _asked(alice)
    lock = _recorded(asked)
    again = Session(lock, environ=bob)
    assert again.plan().digest == asked.plan().digest
    assert (lock.parent / "code").is_dir()
    assert again.source.base == alice
    assert again.binding.roots["runfile"] == str(alice)


def test_found_in_the_directory_of_a_run_is_its_lock(
    alice: Path, bob: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _asked(alice)
    monkeypatch.chdir(_recorded(asked).parent)
    again = Session(environ=bob)
    assert again.source.path.name == "run.lock.toml"
    assert again.plan().digest == asked.plan().digest
    with pytest.raises(ConfigError) as caught:
        Session(Path.cwd(), environ=bob)
    assert caught.value.problems[0].hint == str(Path.cwd() / "run.lock.toml")


def test_a_replay_is_recorded_as_well_as_the_run(alice: Path, bob: Mapping[str, str]) -> None:
    asked = _asked(alice)
    first = _recorded(asked)
    again = Session(first, environ=bob)
    text = again.files()["run.lock.toml"]
    assert isinstance(text, str)
    data, earlier = loads(text), loads(first.read_text())
    assert data["replay"] == earlier["replay"]
    assert data["pins"] == earlier["pins"]


def test_what_lies_beside_a_copy_is_its_own(alice: Path, bob: Mapping[str, str], tmp_path: Path) -> None:
    asked = _asked(alice)
    copy = tmp_path / "paper" / "run.toml"
    shutil.copytree(alice / "code", copy.parent / "code")
    shutil.copy(_recorded(asked), copy)
    shutil.rmtree(alice)
    again = Session(copy, environ=bob)
    assert again.source.base == copy.parent
    assert again.plan().digest == asked.plan().digest


def test_a_copy_takes_no_other_folder_for_the_code(
    alice: Path, bob: Mapping[str, str], tmp_path: Path
) -> None:
    """With `path = "."` any folder is there."""
    (alice / "run.toml").write_text(RUN.replace('"code"', '"."'))
    asked = _asked(alice)
    copy = tmp_path / "elsewhere" / "paper.toml"
    copy.parent.mkdir()
    shutil.copy(_recorded(asked), copy)
    again = Session(copy, environ=bob)
    assert again.source.base == alice
    assert again.plan().digest == asked.plan().digest


def test_a_file_that_is_not_there_is_named_with_its_line(
    alice: Path, bob: Mapping[str, str], tmp_path: Path
) -> None:
    copy = tmp_path / "paper.toml"
    shutil.copy(_recorded(_asked(alice)), copy)
    (alice / "code").rename(alice / "moved")
    with pytest.raises(ConfigError) as caught:
        Session(copy, environ=bob)
    (problem,) = caught.value.problems
    assert problem.code == "no-file"
    assert problem.span is not None
    assert problem.span.line == 1 + RUN.splitlines().index('path = "code"')
    assert str(alice) in problem.notes[0]


def test_a_file_that_has_changed_is_named_with_its_line(alice: Path, bob: Mapping[str, str]) -> None:
    lock = _recorded(_asked(alice))
    (alice / "code" / "train.py").write_text("print('another')\n")
    (problem,) = _told(Session(lock, environ=bob))
    assert not problem.fatal
    assert problem.message == "code is not what it was when this run was recorded"
    assert problem.span is not None
    assert lock.read_text().splitlines()[problem.span.line - 1].startswith("code = ")


def test_another_plan_says_so_and_what_was_asked_anew_does_not(alice: Path, bob: Mapping[str, str]) -> None:
    lock = _recorded(_asked(alice))
    assert _told(Session(lock, sets=['env.A="3"'], environ=bob)) == []
    assert _told(Session(lock, account="bob2", environ=bob)) == []
    text = lock.read_text()
    lock.write_text(text.replace('env.A = "2"', 'env.A = "4"'))
    (problem,) = _told(Session(lock, environ=bob))
    assert "keys or pins of this file" in problem.message
    lock.write_text(text.replace('env.A = "2"', 'env.A = "4"').replace("schedulers:", "schedulers:other-"))
    (problem,) = _told(Session(lock, environ=bob))
    assert "not here: schedulers:other-" in problem.message


def test_a_token_that_did_not_count_is_not_recorded(alice: Path) -> None:
    """The settings hold one in a variable that the run file sets."""
    settings = alice.parent / "settings.toml"
    token = "hf_" + "a" * 20
    text = settings.read_text().replace('A = "of the settings, and not in force"', f'A = "{token}"')
    settings.write_text(text)
    recorded = _recorded(_asked(alice)).read_text()
    assert token in text
    assert token not in recorded


def test_what_the_settings_say_of_facts_counts_as_it_is_there(alice: Path, tmp_path: Path) -> None:
    """Of the settings of then only what they said of the run is recorded."""
    asked = _asked(alice)
    lock = _recorded(asked)
    settings = alice.parent / "settings.toml"
    settings.write_text(
        f'[cluster.local]\nassets = "{tmp_path}/assets"\n[cluster.local.defaults.env]\nD = "new"\nF = "new"\n'
    )
    again = Session(lock, environ=_environ(alice.parent))
    assert again.plan().digest == asked.plan().digest
    assert again.binding.roots["assets"] == f"{tmp_path}/assets"


def test_the_record_of_a_run_is_not_written_to(alice: Path, bob: Mapping[str, str]) -> None:
    lock = _recorded(_asked(alice))
    text = lock.read_text()
    with pytest.raises(ConfigError, match="is the record of a run"):
        Session(lock, environ=bob).with_pins(())
    assert lock.read_text() == text


def test_a_project_with_a_plan_of_its_own_is_no_run(alice: Path) -> None:
    (alice / "plan.json").write_text("{}")
    assert _asked(alice).with_pins(()).locked


def test_a_copy_that_is_locked_again_keeps_what_was_asked(
    alice: Path, bob: Mapping[str, str], tmp_path: Path
) -> None:
    asked = _asked(alice)
    copy = tmp_path / "again.toml"
    shutil.copy(_recorded(asked), copy)
    again = Session(copy, environ=bob).with_pins(())
    assert path_of(copy) == copy
    assert Session(copy, environ=bob).plan().digest == again.plan().digest == asked.plan().digest


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("folder = ", "fodler = ", "replay.fodler"),
        ('digest = "', 'digest = 5 # "', "replay.digest"),
        ("[replay.set]", "[replay.set]\nenv.Z = 5", "env.Z"),
        ("[replay.set]", "[replay.set]\nenvv.Z = 'z'", "envv"),
    ],
)
def test_a_table_that_is_wrong_is_shown(
    alice: Path, bob: Mapping[str, str], old: str, new: str, where: str
) -> None:
    lock = _recorded(_asked(alice))
    text = lock.read_text().replace(old, new)
    lock.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Session(lock, environ=bob)
    (problem,) = caught.value.problems
    assert problem.where == where
    assert problem.span is not None
    assert problem.span.line == 1 + text[: text.index(new) + len(new)].count("\n")


@pytest.mark.parametrize(
    "value",
    ['plain "quoted" \\ é\n\t', True, 5, -0.00001, 1e300, float("inf"), [], [["a"], {}], {"a b": {"c": [1]}}],
)
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    assert loads(f"value = {written(value)}")["value"] == value
