"""One scratch environment for all tests of this folder, with the plugins of others in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.thirdparty import scratch
from tests.thirdparty.polaris import on_polaris
from tests.thirdparty.scratch import HERE, Scratch

__all__ = ["on_polaris"]
PLUGINS = ("hpctrain-flux", "hpctrain-lumi", "hpctrain-perlmutter", "hpctrain-podman-hpc", "hpctrain-polaris")
collect_ignore = list(PLUGINS)  # their tests run where they are installed


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """The product, three clusters and an environment of others, all from wheels."""
    made = scratch.create(tmp_path_factory.mktemp("scratch") / "env")
    for plugin in PLUGINS:
        made.install(scratch.wheel(HERE / plugin, made.folder / "wheels"))
    return made


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """A run file of the user's own."""
    text = (HERE / "hpctrain-lumi/hpc_lumi/examples/two-nodes.toml").read_text(encoding="utf-8")
    path = tmp_path / "run.toml"
    path.write_text(text + '\n[environment]\nuse = "ready"\n', encoding="utf-8")
    return path
