"""What the tests of the outside world share: other processes, umasks, and a small cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.plan.conftest import cluster as cluster


@pytest.fixture(params=[0o000, 0o777], ids=["umask 000", "umask 777"])
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """The two worst umasks: everything open, and nothing even for the owner."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another Python with our sources, running `code`; tests start and end it by its own handle."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": f"{ROOT}/core"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def mode(path: Path) -> int:
    """The permission bits of `path`."""
    return path.stat().st_mode & 0o777


def alive(pid: int) -> bool:
    """Whether the process still runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
