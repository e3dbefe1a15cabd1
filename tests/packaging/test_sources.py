"""Editable installs for those who change hpctrain, and what a source distribution holds."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.packaging.conftest import Make
from tests.packaging.environment import LIMIT
from tests.packaging.places import MEMBERS, OWN, ROOT
from tests.packaging.test_install import _digests


def test_an_editable_install_runs_from_the_tree(make: Make, dist: Path) -> None:
    environment = make(OWN, "hatchling", "hatch-fancy-pypi-readme", "editables")
    links = (f"--find-links={dist}", f"--find-links={ROOT / '.cache/wheels'}")
    folders = [word for folder in MEMBERS.values() for word in ("-e", str(folder))]
    environment.pip("install", "--no-index", "--no-build-isolation", *links, *folders)
    told = environment.run(
        "python", "-c", "import hpctrain, hpc_alps; print(hpctrain.__file__, hpc_alps.__file__)"
    )
    assert told.stdout.split() == [
        str(ROOT / "core/hpctrain/__init__.py"),
        str(ROOT / "hpc_alps/hpc_alps/__init__.py"),
    ]
    assert len(_digests(environment)) == len(MEMBERS) - 1  # core is no cluster; `local` comes with plugins


def _built(kind: str, source: Path, folder: Path) -> Path:
    argv = (sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder))
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(argv, cwd=source, env=env, check=True, timeout=LIMIT, capture_output=True)
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("member", MEMBERS)
def test_a_wheel_of_the_source_distribution_is_the_same(
    wheels: dict[str, Path], tmp_path: Path, member: str
) -> None:
    with tarfile.open(_built("sdist", MEMBERS[member], tmp_path / "sdist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in Debian 12's Python 3.11.2
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    wheel = _built("wheel", source, tmp_path / "wheel")
    assert wheel.name == wheels[member].name
    with ZipFile(wheel) as rebuilt, ZipFile(wheels[member]) as direct:
        assert {n: rebuilt.read(n) for n in rebuilt.namelist()} == {
            n: direct.read(n) for n in direct.namelist()
        }


@pytest.mark.parametrize("member", MEMBERS)
def test_a_source_distribution_holds_only_what_it_should(tmp_path: Path, member: str) -> None:
    path = _built("sdist", MEMBERS[member], tmp_path)
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        licence = next(m for m in archive.getmembers() if m.name.endswith("/LICENSE"))
    assert licence.isfile(), "a link to a file that is not in the archive"
    tops = {name.partition("/")[0] for name in names}
    packages = {
        "hpctrain": {"core", "CHANGELOG.md"},
        "hpctrain_plugins": {"hpctrain_plugins", "hpctrain_tokens", "hpctrain_trl"},
    }
    allowed = {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
    assert tops - allowed == packages.get(member, {member.replace("hpctrain", "hpc")})
