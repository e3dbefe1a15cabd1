"""A scratch environment with the product's wheels, as somebody who installs it has it; no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PRODUCT = (ROOT, ROOT / "plugins", ROOT / "hpc_frontier")
OTHERS = (
    *("attrs", "cattrs", "click", "pluggy", "PyYAML", "typing_extensions", "exceptiongroup", "tomli"),
    *("pytest", "iniconfig", "packaging", "pygments"),
)
"""What the product and pytest stand on; a name that this Python does not need is not there."""


def rewrite(module: Path, text: str) -> None:
    """Give a module another text: Python takes one of the same second and length for the compiled one."""
    for compiled in module.parent.glob(f"__pycache__/{module.stem}.*"):
        compiled.unlink()
    module.write_text(text, encoding="utf-8")


@attrs.frozen
class Scratch:
    """The environment's folder; distributions come and go by pip."""

    folder: Path

    @property
    def site(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A program of this environment, which sees none of ours."""
        clean = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}
        path = shutil.which(argv[0], path=clean["PATH"]) or argv[0]
        return subprocess.run(
            [path, *argv[1:]], capture_output=True, text=True, timeout=120, cwd=cwd or self.folder, env=clean
        )

    def pip(self, *argv: str) -> None:
        """Pip from outside, on this environment."""
        python = str(self.folder / "bin" / "python")
        options = ("--disable-pip-version-check", "-q", "--python", python)
        checked(sys.executable, "-m", "pip", *options, *argv)

    def install(self, wheel: Path) -> None:
        """Install one wheel, and nothing that it asks for: that is there."""
        self.pip("install", "--no-deps", "--no-index", "--force-reinstall", str(wheel))


def create(folder: Path) -> Scratch:
    """An environment with the product's wheels and what they stand on."""
    venv.create(folder, with_pip=False, symlinks=True)
    scratch = Scratch(folder)
    for name in OTHERS:
        _copy(name, scratch.site)
    for source in PRODUCT:
        scratch.install(wheel(source, folder / "wheels"))
    return scratch


def wheel(source: Path, folder: Path) -> Path:
    """Build the wheel of a source folder, as its author would."""
    place = folder / source.name
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q")
    checked(sys.executable, "-m", "pip", "wheel", *options, "-w", str(place), str(source))
    (built,) = place.glob("*.whl")
    return built


def checked(*argv: str) -> None:
    """Run a program that must succeed; our own sources are not on its path."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


def _copy(name: str, site: Path) -> None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    for file in found.files or ():
        if file.parts[0] != ".." and "__pycache__" not in file.parts:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
