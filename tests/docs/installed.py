"""Environments as readers have them: a venv with what a page tells them to install, and nothing else.

Each distinct set of requirements is installed once, from the built wheels and the index of pip, and kept in
`.cache/pages`. When only our own wheels have changed, the packages of others are linked from there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import needs
from tests.packaging.places import ROOT, WHEELS

FOLDER = ROOT / ".cache/pages"
LIMIT = 600
DAY = 24 * 3600

Install = Callable[[tuple[str, ...]], Path]


def environment(dist: Path, requirements: tuple[str, ...]) -> Path:
    """The folder of the venv in which exactly these requirements are installed."""
    wheels = sorted(dist.glob("hpctrain*.whl"))
    base = FOLDER / _key(sys.version, *requirements, *map(_metadata, wheels))
    whole = base.with_name(f"{base.name}-{_key(*(w.read_bytes().hex() for w in wheels))}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _locked(FOLDER / "lock"):
        if not (base / "whole").exists():
            _make(base)
            _pip(base, f"--find-links={dist}", f"--find-links={WHEELS}", *requirements)
            (base / "whole").touch()
        if not (whole / "whole").exists():
            _link(base, whole)
            present = {path.name.partition("-")[0] for path in base.glob("lib/python*/site-packages/*-info")}
            ours = [str(w) for w in wheels if w.name.partition("-")[0] in present]
            _pip(whole, "--no-index", "--no-deps", "--force-reinstall", *ours)
            (whole / "whole").touch()
        for folder in (base, whole):
            (folder / "whole").touch()
        _forget()
    return whole


@pytest.fixture(scope="session")
def install(dist: Path) -> Install:
    """`install(requirements)`: the venv that has exactly these; skips where there is no index to ask."""

    def installed(requirements: tuple[str, ...]) -> Path:
        try:
            return environment(dist, requirements)
        except subprocess.CalledProcessError as error:
            reason = str(error.stderr).strip().rpartition("\n")[2]
            needs("data", False, f"cannot install {' '.join(requirements)}: {reason}")
            raise

    return installed


def _make(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    argv = (sys.executable, "-m", "venv", "--without-pip", str(folder))
    subprocess.run(argv, check=True, timeout=LIMIT)


def _pip(folder: Path, *arguments: str) -> None:
    """Install into the venv with the tests' own pip, as its user has configured it."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin/python"))
    argv = (*pip, "install", "--quiet", "--no-compile", *arguments)
    subprocess.run(argv, check=True, timeout=LIMIT, capture_output=True, text=True)


def _link(base: Path, whole: Path) -> None:
    """The same venv in another place: its files linked, its programs with their new path."""
    shutil.rmtree(whole, ignore_errors=True)
    shutil.copytree(base, whole, symlinks=True, copy_function=os.link)
    for path in (*(whole / "bin").iterdir(), whole / "pyvenv.cfg"):
        if path.is_symlink() or str(base).encode() not in (content := path.read_bytes()):
            continue
        mode = path.stat().st_mode
        path.unlink()  # a link: the other place keeps what it has
        path.write_bytes(content.replace(str(base).encode(), str(whole).encode()))
        path.chmod(mode)
    (whole / "whole").unlink()


def _forget() -> None:
    """Remove the environments that no test has used for two days: of earlier wheels, or earlier lines."""
    for mark in FOLDER.glob("*/whole"):
        if time.time() - mark.stat().st_mtime > 2 * DAY:
            shutil.rmtree(mark.parent, ignore_errors=True)


def _metadata(wheel: Path) -> str:
    """What a wheel asks for: its metadata without the text of its page."""
    with ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().partition("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if line.startswith(("Requires-Dist", "Provides-Extra")))


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time makes environments."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
