"""Folders that a job makes for a run: its copy of the code, and a cache that its user alone can change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hpctrain_job.tree import digest
from tests.conftest import ROOT, needs

RENDER = ROOT / "core/hpctrain/render"
STRANGER = 12345


def job(folder: Path, body: str, *arguments: object, step: str = "train") -> subprocess.CompletedProcess[str]:
    """Bash as job.sh begins, in the run directory."""
    script = (
        f"set -euo pipefail; umask 077; export HPC_STEP={step} HPC_JOB=1 HPC_RUN=$PWD\n"
        f". {RENDER}/publish.sh; . {RENDER}/job.sh\n{body}"
    )
    argv = ("bash", "-c", script, "bash", *map(str, arguments))
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """An asset as it is published: a link to a folder, which others may only read."""
    folder = tmp_path / ".hpc-code/content"
    (folder / "package").mkdir(parents=True)
    (folder / "package/train.py").write_text("print()\n")
    (folder / "go.sh").write_text("echo\n")
    (folder / "go.sh").chmod(0o555)
    (folder / "data").symlink_to("package")
    for path in (folder / "package", folder):
        path.chmod(0o555)
    link = tmp_path / "code"
    link.symlink_to(folder.relative_to(tmp_path))
    return link


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_the_copy_is_whole_and_may_be_written(run: Path, code: Path) -> None:
    before = digest(code)
    done = job(run, 'hpc_source "$1"', code)
    assert done.returncode == 0, done.stderr
    assert digest(run / "source") == before
    (run / "source/package/train.py").write_text("other\n")
    (run / "source/package/more").touch()
    modes = [path.stat().st_mode & 0o700 for path in (run / "source/package", run / "source/go.sh")]
    assert modes == [0o700, 0o700]
    assert digest(code) == before


def test_what_the_program_wrote_stays_for_the_next_attempt(run: Path, code: Path) -> None:
    job(run, 'hpc_source "$1"', code)
    (run / "source/written").touch()
    assert job(run, 'hpc_source "$1"', code).returncode == 0
    assert (run / "source/written").exists()


def test_a_copy_that_was_cut_is_made_anew(run: Path, code: Path) -> None:
    (run / "source.train.1/package").mkdir(parents=True)
    (run / "source.train.1/package/half").touch()
    assert job(run, 'hpc_source "$1"', code).returncode == 0
    assert digest(run / "source") == digest(code)
    assert not list(run.glob("source.*"))


def test_the_history_of_a_folder_of_one_s_own_stays_there(run: Path, tmp_path: Path) -> None:
    """It holds the address of its origin, with the login that somebody typed there."""
    own = tmp_path / "own"
    for repository in (own, own / "deps/lib"):
        (repository / ".git").mkdir(parents=True)
        (repository / ".git/config").write_text("[remote]\nurl = https://me:t0ken@git.example.org/x\n")
        (repository / ".gitignore").touch()
    done = job(run, 'hpc_source "$1" own', own)
    assert done.returncode == 0, done.stderr
    assert digest(run / "source") == digest(own)
    assert sorted(path.name for path in run.rglob(".git*")) == [".gitignore", ".gitignore"]
    (run / "source").rename(run / "other")
    job(run, 'hpc_source "$1"', own)  # a checkout of hpctrain's, whose commit programs ask for
    assert (run / "source/deps/lib/.git/config").exists()


def test_code_that_is_no_folder_is_named(run: Path) -> None:
    done = job(run, 'hpc_source "$1"; echo went on', run / "gone.py")
    assert (done.returncode, done.stdout) == (66, "")
    assert done.stderr == f"hpctrain: {run}/gone.py, the code, is not a folder\n"


def private(run: Path, folder: Path, value: Path | None = None) -> tuple[str, str]:
    """What the variable is behind the line, and what was said."""
    body = 'export CACHE=$1; hpc_private CACHE "$2"; echo "$CACHE"'
    done = job(run, body, value or folder, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_the_shared_cache_is_for_its_user_alone(run: Path) -> None:
    folder = run.parent / ".datasets-0"
    assert private(run, folder) == (str(folder), "")
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "kept").touch()
    assert private(run, folder) == (str(folder), "")
    assert (folder / "kept").exists()


def test_another_place_that_somebody_chose_is_left_alone(run: Path) -> None:
    chosen, folder = run.parent / "chosen", run.parent / ".datasets-0"
    assert private(run, folder, chosen) == (str(chosen), "")
    assert not chosen.exists()
    assert not folder.exists()


def test_a_cache_that_others_may_write_is_not_used(run: Path) -> None:
    folder = run.parent / ".datasets-0"
    folder.mkdir()
    folder.chmod(0o777)
    value, told = private(run, folder)
    assert value == f"{run}/cache/CACHE"
    assert told == f"hpctrain: {folder} may be changed by everybody; CACHE is in the run instead\n"


@pytest.mark.parametrize("swap", ["owner", "link"])
def test_a_cache_that_somebody_else_laid_there_is_not_used(run: Path, swap: str) -> None:
    needs("root", os.geteuid() == 0, "only root makes files of other users")
    folder, real = run.parent / ".datasets-0", run.parent / "real"
    (real if swap == "link" else folder).mkdir(mode=0o755)
    if swap == "link":
        folder.symlink_to(real)
    os.chown(folder, STRANGER, STRANGER, follow_symlinks=False)
    value, told = private(run, folder)
    assert value == f"{run}/cache/CACHE"
    assert f"{folder} belongs to {STRANGER}" in told


def test_without_a_place_for_it_the_run_has_its_own(run: Path) -> None:
    folder = run.parent / "nowhere/.datasets-0"
    value, told = private(run, folder)
    assert value == f"{run}/cache/CACHE"
    assert told == ""
    assert not folder.parent.exists()
    folder.parent.touch()
    assert private(run, folder)[0] == f"{run}/cache/CACHE"
