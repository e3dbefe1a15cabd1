"""A user of Polaris as a stranger's plugin has it, where the stand-in is its PBS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.runfile.facts import load_cluster
from tests.e2e.product import SYSTEM
from tests.standin_pbs.fixtures import Standin
from tests.standin_pbs.site import queues_of
from tests.thirdparty.scratch import HERE, Scratch

FACTS = HERE / "hpctrain-polaris/hpc_polaris"
ROLES = ("home", "state", "env", "images", "assets", "checkpoints", "runs")


@attrs.frozen
class Alice:
    """A user of a login node whose PBS is the stand-in, and whose folders are her own."""

    installed: Scratch
    standin: Standin
    folder: Path
    variables: Mapping[str, str] = attrs.field(factory=dict)

    def __call__(self, *argv: str, code: int = 0) -> str:
        """What `hpctrain` says to her: its answer, or its error."""
        return self.run("hpctrain", *argv, code=code)

    def run(self, program: str, *argv: str, code: int = 0) -> str:
        """A program of the environment that hpctrain is installed in."""
        environ = {
            **self.variables,
            "PATH": f"{self.standin.bin}:{self.installed.folder / 'bin'}:{SYSTEM}",
            "HOME": str(self.folder / "home"),
            "HPCTRAIN_SETTINGS": str(self.folder / "settings.toml"),
            "LANG": "C.UTF-8",
        }
        words = [str(self.installed.folder / "bin" / program), *argv]
        done = subprocess.run(
            words, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=150
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    def json(self, *argv: str) -> Any:
        return json.loads(self(*argv, "--json"))


@pytest.fixture
def on_polaris(installed: Scratch, tmp_path: Path) -> Iterator[Alice]:
    """A user of Polaris, whose PBS has the queues of its facts."""
    standin = Standin(tmp_path)
    standin.set(queues=queues_of(load_cluster(FACTS)), default_queue="debug")
    storage = "".join(
        f'[cluster.polaris.storage.{role}]\npath = "{tmp_path}/home/{role}"\nsource = "inferred"\n'
        for role in ROLES
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "settings.toml").write_text(f'[cluster.polaris]\ndetect = ["."]\n{storage}')
    yield Alice(installed, standin, tmp_path)
    standin.clean()
