"""`--isolated`: nothing of the user's site-packages and no installed site hook takes part."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.hooks.dists import GOOD, distribution

RUN = """\
name = "hello"
cluster = "local"
[environment]
use = ""
[train]
use = "command"
[train.command]
argv = ["true"]
"""
SOURCES = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose user site has site hooks, a package and a line of Python that runs when Python starts."""
    base = Path(os.path.relpath(site.getusersitepackages(), site.getuserbase()))
    folder = tmp_path / "home/.local" / base
    module = f"{GOOD}open({str(tmp_path / 'RAN')!r}, 'w').close()\n"
    distribution(folder, "acme", "1.0", {"hpctrain.hooks": {"acme": "acme_site"}}, {"acme_site": module})
    (folder / "started.pth").write_text(f"import sys; open({str(tmp_path / 'STARTED')!r}, 'a').write('x')\n")
    (tmp_path / "run.toml").write_text(RUN)
    return tmp_path / "home"


def plan(home: Path, *words: str, **environ: str) -> list[str]:
    """The plugins of a plan that a Python with a user site makes."""
    python = Path(sysconfig.get_config_var("BINDIR"), f"python{sys.version_info[0]}.{sys.version_info[1]}")
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": ":".join(SOURCES), **environ}
    done = subprocess.run(
        [python, "-m", "hpctrain", *words, "--json", "plan", "run.toml"],
        cwd=home.parent, env=environ, text=True, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    plugins: list[str] = json.loads(done.stdout)["plan"]["plugins"]
    return plugins


def test_without_it_the_user_s_packages_take_part(home: Path) -> None:
    assert "hooks:acme (acme 1.0)" in plan(home)
    assert (home.parent / "RAN").exists()
    assert (home.parent / "STARTED").read_text() == "x"


@pytest.mark.parametrize("how", ["option", "variable"])
def test_neither_user_site_nor_site_hooks(home: Path, how: str) -> None:
    words, environ = (("--isolated",), {}) if how == "option" else ((), {"HPCTRAIN_ISOLATED": "1"})
    assert not any("acme" in plugin for plugin in plan(home, *words, **environ))
    assert not (home.parent / "RAN").exists()
    # Once by the Python that read the option, never by the one that planned.
    assert (home.parent / "STARTED").read_text() == "x"


def test_site_hooks_beside_hpctrain_are_left_out_too(home: Path, tmp_path: Path) -> None:
    module = f"{GOOD}open({str(tmp_path / 'RAN')!r}, 'w').close()\n"
    beside = tmp_path / "beside"
    distribution(beside, "other", "2.0", {"hpctrain.hooks": {"other": "other_site"}}, {"other_site": module})
    path = ":".join([*SOURCES, str(beside)])
    assert "hooks:other (other 2.0)" in plan(home, PYTHONPATH=path)
    (tmp_path / "RAN").unlink()
    assert not any("other" in plugin for plugin in plan(home, "--isolated", PYTHONPATH=path))
    assert not (tmp_path / "RAN").exists()


def test_an_hpctrain_that_lies_there_itself_is_told(home: Path) -> None:
    folder = next((home / ".local").rglob("site-packages"))
    for source in SOURCES:
        for package in ("hpctrain", "hpctrain_job"):
            if (Path(source) / package / "__init__.py").is_file() and not (folder / package).exists():
                (folder / package).symlink_to(Path(source) / package)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():  # and what it stands on
        if not entry.name.startswith(("hpc", "_")) and entry.suffix not in (".pth", ".dist-info"):
            (folder / entry.name).symlink_to(entry)
    others = [path for path in SOURCES if not (Path(path) / "hpctrain/__init__.py").is_file()]
    python = Path(sysconfig.get_config_var("BINDIR"), f"python{sys.version_info[0]}.{sys.version_info[1]}")
    done = subprocess.run(
        [python, "-m", "hpctrain", "--isolated", "plan", "run.toml"],
        cwd=home.parent, env={"HOME": str(home), "PYTHONPATH": ":".join(others)},
        text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error[isolated]: hpctrain is in" in done.stderr
