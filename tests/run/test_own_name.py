"""The run's own name: made once, kept when its folder moves, another in a copy; in bash and in Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hpctrain.render
from hpctrain.errors import IntegrityError
from hpctrain.run.disk.directory import RunDirectory
from tests.patience import PATIENCE

SCRIPT = Path(hpctrain.render.__file__).with_name("identity.sh")
Identify = Callable[[Path], str]


def in_bash(folder: Path) -> str:
    command = ["bash", "-euc", '. code/identity.sh; hpc_identify; printf %s "$HPC_OWN"']
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20 * PATIENCE)
    if done.returncode == 78:
        raise IntegrityError.of("run-id", done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_python(folder: Path) -> str:
    return RunDirectory(folder).identify()


@pytest.fixture(params=[(a, b) for a in (in_bash, in_python) for b in (in_bash, in_python)])
def both(request: pytest.FixtureRequest) -> tuple[Identify, Identify]:
    """Who makes the name, and who finds it later."""
    maker, finder = request.param
    return maker, finder


def ejected(folder: Path) -> Path:
    (folder / "code").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "code")
    return folder


def test_it_is_made_once(tmp_path: Path, both: tuple[Identify, Identify]) -> None:
    folder = ejected(tmp_path / "my run/-scripts é")
    name = both[0](folder)
    assert name.startswith("_scripts__")
    assert [both[1](folder), RunDirectory(folder).own_name] == [name, name]
    assert sorted(path.name for path in folder.iterdir()) == ["code", "id"]


def test_two_folders_of_one_name_have_two(tmp_path: Path, both: tuple[Identify, Identify]) -> None:
    first, second = ejected(tmp_path / "a/my-run/scripts"), ejected(tmp_path / "b/my-run/scripts")
    assert both[0](first) != both[1](second)


def test_it_moves_with_the_folder(tmp_path: Path, both: tuple[Identify, Identify]) -> None:
    folder = ejected(tmp_path / "here")
    name = both[0](folder)
    moved = folder.rename(tmp_path / "there")
    assert [RunDirectory(moved).own_name, both[1](moved)] == [name, name]
    assert (moved / "id").read_text() == f"{name}\n{moved}\n"
    ejected(folder)  # another one takes its place
    assert both[0](folder) != name
    assert both[1](moved) == name


def test_a_copy_is_another_run(tmp_path: Path, both: tuple[Identify, Identify]) -> None:
    folder = ejected(tmp_path / "here")
    name = both[0](folder)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert RunDirectory(copy).own_name == "copy"
    copied = both[1](copy)
    assert copied != name
    assert [both[0](copy), both[1](folder), RunDirectory(folder).own_name] == [copied, name, name]


def test_another_path_to_the_folder_is_no_copy(tmp_path: Path, both: tuple[Identify, Identify]) -> None:
    folder = ejected(tmp_path / "here")
    (tmp_path / "link").symlink_to(folder)
    name = both[0](tmp_path / "link")
    assert [both[1](folder), RunDirectory(tmp_path / "link").own_name] == [name, name]


DAMAGED = ("", "name\n", "../other\n/x\n", "a/b\n/x\n", "-x\n/x\n", ".\n/x\n", "a\nb\n", "\0\n")


@pytest.mark.parametrize("text", DAMAGED)
@pytest.mark.parametrize("identify", [in_bash, in_python])
def test_a_damaged_one_is_no_new_run(tmp_path: Path, identify: Identify, text: str) -> None:
    """A training that began anew would be the worse surprise."""
    folder = ejected(tmp_path / "here")
    (folder / "id").write_text(text)
    with pytest.raises(IntegrityError, match="id is damaged"):
        identify(folder)
    assert (folder / "id").read_text() == text


def test_a_run_of_an_earlier_version_keeps_the_name_of_its_folder(tmp_path: Path) -> None:
    """Its scripts know no other."""
    run = RunDirectory(tmp_path / "demo/1-4f1c9a2e")
    run.path.mkdir(parents=True)
    assert [run.own_name, run.identify(), list(run.path.iterdir())] == ["1-4f1c9a2e", "1-4f1c9a2e", []]


def test_many_at_once_agree(tmp_path: Path) -> None:
    folder = ejected(tmp_path / "here")
    command = ["bash", "-euc", '. code/identity.sh; hpc_identify; printf %s "$HPC_OWN"']
    jobs = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(12)]
    names = {job.communicate(timeout=60)[0] for job in jobs} | {in_python(folder)}
    assert len(names) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["code", "id"]
