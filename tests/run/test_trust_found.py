"""A run file that nobody named, of another user or for another user to write, is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpctrain import lock
from hpctrain.errors import ConfigError
from hpctrain.hooks.load import load_file
from hpctrain.model.run import RunSpec
from hpctrain.runfile.reading.find import find_run
from tests.run.users import GROUP, MALLORY, USER, acting_as, run_as
from tests.run.users import project as project

HOOKS = "HPCTRAIN_API = 1\nimport pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"


def planted(project: Path, owner: int, mode: int) -> Path:
    """A run file in the project's folder, with a folder of the user's below it."""
    file = project / "run.toml"
    file.write_text('name = "demo"\n[hooks]\nfile = "hooks.py"\n')
    os.chown(file, owner, GROUP)
    file.chmod(mode)
    below = project / "sub"
    below.mkdir()
    os.chown(below, USER, GROUP)
    return file


@pytest.mark.parametrize(
    ("owner", "mode", "fault"),
    [
        (MALLORY, 0o644, f"belongs to {MALLORY}"),
        (USER, 0o666, "may be written by everybody"),
        (USER, 0o664, "may be written by its group"),
    ],
)
@pytest.mark.parametrize("start", ["sub", "."])
def test_a_found_file_of_another_user_is_named_and_refused(
    project: Path, owner: int, mode: int, fault: str, start: str
) -> None:
    file = planted(project, owner, mode)
    with acting_as(USER):
        with pytest.raises(ConfigError) as refused:
            find_run(None, {"HOME": "/nonexistent"}, project / start)
        (problem,) = refused.value.problems
        assert problem.message == f"{file} was found, not named, and {fault}: nothing in it is used"
        assert find_run(file, {}, project / start)[0] == file


@pytest.mark.parametrize("owner", [0, USER])
def test_a_found_file_of_this_user_or_root_is_used(project: Path, owner: int) -> None:
    file = planted(project, owner, 0o644)
    with acting_as(USER):
        assert find_run(None, {"HOME": "/nonexistent"}, project / "sub") == (file, str(file))


EVIL = 'name = "demo"\n[hooks]\nfile = "hooks.py"\n'
PLANTS = {
    "a file that she alone reads": 'printf "$EVIL" >run.toml; chmod 600 run.toml',
    "a link to a file of hers": 'mkdir mine; printf "$EVIL" >mine/run.toml; ln -s mine/run.toml run.toml',
    "a link to a file of the user": "ln -s own/old.toml run.toml",
    "a link to a link of the user": "ln -s own/link.toml run.toml",
    "a link to a file of root": "ln -s own/root.toml run.toml",
    "a folder above that she made": 'mkdir -p up/sub; printf "$EVIL" >up/run.toml; chmod -R a+rx up',
    "a copy beside the user's hooks": 'printf "$EVIL" >run.toml',
    "a file with a byte order mark": 'printf "\\357\\273\\277$EVIL" >run.toml',
    "a file that is too long": 'printf "$EVIL" >run.toml; head -c 2000000 /dev/zero >>run.toml',
    "a file in the place of the user's": 'printf "$EVIL" >new; mv -f new run.toml',
}


@pytest.mark.parametrize("plant", PLANTS)
def test_what_she_puts_above_is_not_read(project: Path, plant: str) -> None:
    (project / "sub").mkdir()
    (project / "own").mkdir()
    for name in ("old.toml", "root.toml", "hooks.py"):
        (project / "own" / name).write_text(EVIL)
    (project / "hooks.py").write_text(HOOKS)
    (project / "own/link.toml").symlink_to("old.toml")
    if plant == "a file in the place of the user's":
        (project / "run.toml").write_text("")
    for path in project.rglob("*"):
        os.chown(path, 0 if path.name == "root.toml" else USER, GROUP, follow_symlinks=False)
    done = run_as(MALLORY, ["bash", "-ec", PLANTS[plant]], project, EVIL=EVIL)
    assert done.returncode == 0, done.stderr
    start = project / "up/sub" if (project / "up").exists() else project / "sub"
    with acting_as(USER), pytest.raises(ConfigError) as refused:
        find_run(None, {"HOME": "/nonexistent"}, start)
    (problem,) = refused.value.problems
    assert (problem.code, str(MALLORY) in problem.message) == ("not-trusted", True), problem.message


@pytest.mark.parametrize("plant", ["cp mine run.lock.toml", "ln -s own.lock.toml run.lock.toml"])
def test_pins_of_another_user_are_not_used(project: Path, plant: str) -> None:
    """Beside a file of the user's in a folder of the project: they would say what is installed."""
    pins = '[pins.local]\n"git:https://git.example.org/x" = "fork"\n'
    for name, text in {"run.toml": 'name = "demo"\n', "own.lock.toml": pins}.items():
        (project / name).write_text(text)
        os.chown(project / name, USER, GROUP)
    done = run_as(MALLORY, ["bash", "-ec", f'printf %s "$PINS" >mine; {plant}'], project, PINS=pins)
    assert done.returncode == 0, done.stderr
    (project / "mine").chmod(0o644)
    with acting_as(USER):
        with pytest.raises(ConfigError, match=f"{MALLORY}: what it pins would be installed") as refused:
            lock.read(project / "run.toml", "local", RunSpec(name="demo", cluster="local"))
        assert refused.value.problems[0].code == "not-trusted"
        with pytest.raises(ConfigError):
            lock.text(project / "run.toml", {})
        (project / "own.lock.toml").rename(project / "run.lock.toml")
        assert lock.read(project / "run.toml", "local", RunSpec(name="demo", cluster="local")).pins


def test_pins_of_the_run_file_s_owner_are_used(project: Path) -> None:
    """Of a colleague's run file, which the user named."""
    for name, text in {"run.toml": "", "run.lock.toml": '[pins.local]\n"pypi:x" = "1"\n'}.items():
        (project / name).write_text(text)
        os.chown(project / name, MALLORY, GROUP)
        (project / name).chmod(0o644)
    with acting_as(USER):
        assert lock.read(project / "run.toml", "local", RunSpec(name="demo", cluster="local")).pins


@pytest.mark.parametrize(("owner", "runs"), [(USER, True), (MALLORY, False)])
def test_hooks_beside_an_own_run_file_are_not_another_users(project: Path, owner: int, runs: bool) -> None:
    file = planted(project, USER, 0o644)
    hooks = project / "hooks.py"
    hooks.write_text(HOOKS)
    os.chown(hooks, owner, GROUP)
    hooks.chmod(0o644)
    with acting_as(USER):
        if runs:
            load_file(hooks, file)
        else:
            with pytest.raises(ConfigError, match="it would run as you"):
                load_file(hooks, file)
    assert (project / "ran").exists() == runs
