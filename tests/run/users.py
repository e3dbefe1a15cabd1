"""Two real users of one group, for tests of what one may do to the other: only root can be both."""

from __future__ import annotations

import contextlib
import grp  # noqa: F401  (another user may not enter the folder of our Python)
import os
import pwd  # noqa: F401
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import cattrs  # noqa: F401
import pytest

from tests.conftest import ROOT, needs

USER, MALLORY, GROUP = 61001, 61002, 61000
PUBLISH = ROOT / "core/hpctrain/render/publish.sh"


@pytest.fixture
def project() -> Iterator[Path]:
    """A project's folder as sites make it, which both users may enter and write."""
    needs("root", os.geteuid() == 0, "only root can be two other users")
    needs("setpriv", shutil.which("setpriv") is not None, "setpriv (util-linux) is not installed")
    base = Path(tempfile.mkdtemp(prefix="hpctrain-trust-"))
    base.chmod(0o755)
    # The checkout may lie where only its owner enters: both users read a copy.
    shutil.copytree(ROOT / "core", base / "core", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PUBLISH, base / "publish.sh")
    project = base / "project"
    project.mkdir()
    os.chown(project, 0, GROUP)
    project.chmod(0o2770)
    yield project
    shutil.rmtree(base)


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """What this process does to files, as another user: for our own modules, which he may not enter."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(GROUP)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def run_as(uid: int, words: list[str], project: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command as another user, in the project's group alone."""
    return subprocess.run(
        [*_setpriv(uid), *words],
        env=_environment(project) | env,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def bash_started_as(uid: int, body: str, project: Path, **env: str) -> subprocess.Popen[str]:
    """The same in a process group of its own, which goes on while the test does."""
    return subprocess.Popen(
        [*_setpriv(uid), "bash", "-c", _script(body, project)],
        env=_environment(project) | env,
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def bash_as(uid: int, body: str, project: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Lines of bash with publish.sh, as a job runs them."""
    return run_as(uid, ["bash", "-c", _script(body, project)], project, **env)


def _setpriv(uid: int) -> list[str]:
    return ["setpriv", f"--reuid={uid}", f"--regid={GROUP}", "--clear-groups"]


def _environment(project: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": f"{project.parent}/core"}


def _script(body: str, project: Path) -> str:
    return f"set -euo pipefail; umask 077; . {project.parent}/publish.sh\n{body}"


def python_as(uid: int, body: str, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python program in which the packages of core can be imported without a plugin."""
    return run_as(
        uid,
        [
            python(),
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {f'{project.parent}/core'!r})\n{body}",
            *arguments,
        ],
        project,
    )


def with_plugins(project: Path) -> None:
    """A copy of all that `hpctrain` imports, beside that of core, which both users may read."""
    place = project.parent / "core"
    for name in ("attrs", "cattrs", "click", "pluggy", "tomli", "typing_extensions", "hpctrain-plugins"):
        with contextlib.suppress(PackageNotFoundError):  # tomli is a part of Python from 3.11 on
            for file in distribution(name).files or ():
                source = Path(str(file.locate()))
                if source.suffix != ".pyc" and ".." not in file.parts and not (place / file).exists():
                    (place / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, place / file)


def python() -> str:
    """A Python that every user may run: the one of the tests may lie in root's home."""
    for path in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""):
        if (
            path
            and subprocess.run(
                [*_setpriv(USER), path, "-c", ""],
                capture_output=True,
                check=False,
            ).returncode
            == 0
        ):
            return path
    pytest.skip("no Python that another user may run")
