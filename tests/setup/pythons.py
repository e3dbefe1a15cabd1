"""Find the Pythons of this machine and download what the wheels need on each, for tests without an index.

Writes `.cache/pythons.txt` (version and interpreter on each line) and `.cache/wheels/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
TESTING = (
    *("hypothesis", "mypy", "pip", "pytest", "pytest-timeout", "setuptools", "wheel"),
    *("editables", "hatch-fancy-pypi-readme", "hatchling"),
)
PINNED = ("--only-binary=:all:", "-c", "dev-requirements.txt")
ASK = "import sys, venv; print('%d.%d' % sys.version_info[:2], sys.executable)"


def main() -> int:
    """Write the list; download for each interpreter what its own markers ask for."""
    found = pythons()
    wheels = CACHE / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    ours = sorted(str(wheel) for wheel in (ROOT / "dist").glob("*.whl"))
    for version in VERSIONS:
        python = found.get(version, "")
        print(f"setup: wheels for Python {version} ({python or 'on twins'})")
        pip = (sys.executable, "-m", "pip", *(("--python", python) if python else ()))
        into = (f"--find-links={wheels}", f"--dest={wheels}")
        what = (*TESTING, *ours) if python else ("--python-version", version, *ours)
        done = subprocess.run((*pip, "download", "-q", *PINNED, *into, *what), cwd=ROOT, timeout=600)
        if done.returncode:
            return done.returncode
    for wheel in wheels.glob("hpctrain*.whl"):
        wheel.unlink()  # ours come from dist/ alone
    lines = (f"{version} {python}\n" for version, python in found.items())
    (CACHE / "pythons.txt").write_text("".join(lines))
    return 0


def pythons() -> dict[str, str]:
    """One interpreter for each version that we support: on the path, or one of pyenv's."""
    found: dict[str, str] = {}
    for candidate in (sys.executable, *_candidates()):
        try:
            done = subprocess.run((candidate, "-c", ASK), capture_output=True, text=True, timeout=30)
        except OSError:
            continue
        version, _, python = done.stdout.strip().partition(" ")
        if done.returncode == 0 and version in VERSIONS:
            found.setdefault(version, python)
    return dict(sorted(found.items()))


def _candidates() -> Iterator[str]:
    yield from (f"python{version}" for version in VERSIONS)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for versions in (pyenv / "versions", Path(sys.base_prefix).parent):
        for folder in sorted(versions.glob("3.1[0-3].*"), reverse=True):
            yield str(folder / "bin/python")


if __name__ == "__main__":
    sys.exit(main())
