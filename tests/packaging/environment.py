"""A virtual environment of a test: made without pip inside, filled without an index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.packaging.places import ROOT, WHEELS

LIMIT = 300


class Environment:
    """A venv under `folder` made from the interpreter `base`."""

    def __init__(self, base: str, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        home = folder.with_name(f"{folder.name}.home")
        home.mkdir(parents=True)
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}
        subprocess.run((base, "-m", "venv", "--without-pip", str(folder)), check=True, timeout=LIMIT)

    def pip(self, *arguments: str) -> str:
        """Run the tests' own pip on this environment; its output, or an assertion with it."""
        pip = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check")
        done = self.said((*pip, "--python", str(self.bin / "python"), *arguments))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, dist: Path, *requirements: str) -> None:
        """Install from `dist` and from what `make setup` downloaded, and from nowhere else."""
        links = (f"--find-links={dist}", f"--find-links={WHEELS}")
        self.pip("install", "--no-index", *links, *requirements)

    def run(self, program: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment, in its empty home unless told otherwise."""
        return self.said((str(self.bin / program), *arguments), cwd)

    def said(self, argv: tuple[str, ...], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run any program in the environment's surroundings."""
        where = cwd or Path(self.env["HOME"])
        return subprocess.run(argv, env=self.env, cwd=where, capture_output=True, text=True, timeout=LIMIT)

    def sites(self) -> list[Path]:
        """The dist-info folders of what is installed."""
        return sorted(self.folder.glob("lib/python*/site-packages/*.dist-info"))

    def megabytes(self) -> float:
        """What the installed distributions weigh, byte code left out."""
        files = self.folder.glob("lib/python*/site-packages/**/*")
        return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc") / 1e6


def build(dist: Path) -> None:
    """Build every wheel with the one command, unless they are newer than their sources."""
    done = subprocess.run(
        ("make", "-s", "wheels"), cwd=ROOT, capture_output=True, text=True, timeout=2 * LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert dist.is_dir()
