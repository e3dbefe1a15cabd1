"""A package index that wants a login: it gets it wherever it is asked, and nobody else ever sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import ROOT
from tests.environments import stone
from tests.environments.indexes import LOGIN, Index, basic
from tests.environments.small_wheel import wheel

Serve = Callable[..., Index]
USER, TOKEN = LOGIN
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
RUN = """name = "canary"
cluster = "{cluster}"
[environment]
use = "venv"
python = "{python}"
packages = ["{package}"]
compile = ["stone==1.0"]
[environment.venv]
{index}
[train]
use = "command"
[train.command]
argv = ["true"]
[resources]
time = "1h"
"""
FOLDERS = ("core", "plugins", "hpc_isambard")


class Person:
    """Somebody with a home, a run file, and all that hpctrain wrote and printed for them."""

    def __init__(self, folder: Path, cluster: str, index: Index, way: str) -> None:
        self.home, self.folder, self.cluster, self.printed = folder / "home", folder / "work", cluster, ""
        (self.home / ".config/pip").mkdir(parents=True)
        self.folder.mkdir()
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "PIP_RETRIES": "0"}
        self.env["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in FOLDERS)
        self.index = ""
        if way == "netrc":
            self.index = f'index_url = "{index.url}"'
            row = f"machine {urlsplit(index.url).hostname} login {USER} password {TOKEN}\n"
            (self.home / ".netrc").write_text(row)
            (self.home / ".netrc").chmod(0o600)
        elif way == "pip.conf":
            (self.home / ".config/pip/pip.conf").write_text(f"[global]\nindex-url = {index.url_with_login}\n")
        else:
            self.env[way] = index.url_with_login

    def hpctrain(self, *words: str, package: str = "beta") -> int:
        text = RUN.format(cluster=self.cluster, python=PYTHON, package=package, index=self.index)
        (self.folder / "run.toml").write_text(text)
        done = subprocess.run(
            (sys.executable, "-c", "from hpctrain.cli import program; program()", "-v", *words),
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.printed += done.stdout + done.stderr
        return done.returncode

    def written(self) -> dict[Path, bytes]:
        """Every file but the two into which the person wrote the login."""
        files = (f for top in (self.folder, self.home) for f in top.rglob("*") if f.is_file())
        return {f: f.read_bytes() for f in files if f.name not in (".netrc", "pip.conf")}


@pytest.mark.parametrize("cluster", ["local", "isambard"])
@pytest.mark.parametrize("way", ["netrc", "pip.conf", "PIP_INDEX_URL"])
def test_a_login_is_sent_and_never_shown(
    cluster: str, way: str, serve: Serve, shelf: Path, tmp_path: Path
) -> None:
    stone.archive(shelf)
    for tool in ("chisel", "setuptools", "wheel"):
        wheel(shelf, tool, "1.0")
    index = serve(shelf, private=True)
    person = Person(tmp_path, cluster, index, way)
    assert person.hpctrain("lock") == 0, person.printed
    asked = {path for path, authorization in index.requests if authorization == basic()}
    assert {"/simple/beta/", "/simple/stone/", "/files/stone-1.0.tar.gz"} <= asked
    assert person.hpctrain("check") == 0, person.printed
    assert person.hpctrain("plan", "--full") == 0, person.printed
    assert person.hpctrain("plan", "--json") == 0, person.printed
    assert person.hpctrain("eject", "--out", "scripts") == 0, person.printed
    assert person.hpctrain("lock", package="nothing-of-this-name") == 2
    index.status = 503
    assert person.hpctrain("lock") == 6
    files = person.written()
    assert any(path.name == "task.sh" for path in files)
    assert TOKEN not in person.printed
    assert [str(path) for path, content in files.items() if TOKEN.encode() in content] == []


@pytest.mark.parametrize(
    "key", ["environment.venv.index_url", "environment.venv.first_index", "assets.x.url"]
)
def test_a_run_file_that_holds_one_is_refused(key: str, serve: Serve, shelf: Path, tmp_path: Path) -> None:
    index = serve(shelf, private=True)
    person = Person(tmp_path, "local", index, "PIP_INDEX_URL")
    assert person.hpctrain("plan", "--set", f'{key}="{index.url_with_login}"') == 2
    assert "error[secret-in-url]" in person.printed
    assert f"machine {urlsplit(index.url).hostname} login" in person.printed
    assert TOKEN not in person.printed
    assert not index.requests
