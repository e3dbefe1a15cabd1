"""A run file that nobody named, of another user or for another user to write, is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError
from hpctrain.hooks.load import load_file
from hpctrain.runfile.reading.find import find_run
from tests.run.users import GROUP, MALLORY, USER, acting_as
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
