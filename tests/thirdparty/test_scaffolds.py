"""What `init plugin` writes passes its kit where it is installed, before a line is changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.thirdparty import scratch
from tests.thirdparty.scratch import ROOT, Scratch


@pytest.mark.parametrize("kind", ["environment", "scheduler", "trainer"])
def test_a_new_plugin_passes_its_kit_from_its_wheel(installed: Scratch, tmp_path: Path, kind: str) -> None:
    _passes(installed, tmp_path, "--kind", kind)


def test_a_cluster_from_outputs_passes_its_kit_from_its_wheel(installed: Scratch, tmp_path: Path) -> None:
    _passes(installed, tmp_path, "--from", str(ROOT / "tests/cli/outputs"))


def _passes(installed: Scratch, tmp_path: Path, *options: str) -> None:
    source = tmp_path / "hpctrain-oak"
    written = installed.run("hpctrain", "init", "plugin", "oak", *options, "-o", str(source))
    assert written.returncode == 0, written.stderr
    installed.install(scratch.wheel(source, tmp_path / "wheels"))
    try:
        done = installed.run(
            *("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(source / "tests")), cwd=tmp_path
        )
    finally:
        installed.pip("uninstall", "-y", "hpctrain-oak")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d\d passed", done.stdout, re.MULTILINE), done.stdout
