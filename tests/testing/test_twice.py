"""Where planning fails, the kit shows what the command said; on the site's own login node it passes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpctrain.cli.init import scaffold
from tests.patience import PATIENCE


def kit(folder: Path, like: str, changed: Callable[[str], str]) -> subprocess.CompletedProcess[str]:
    """Two tests of the kit on a plugin that `init plugin` makes, with each of its files changed."""
    info = folder / "hpctrain_birch-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: hpctrain-birch\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[hpctrain.clusters]\nbirch = hpc_birch\n")
    for path, text in scaffold.plugin("birch", scaffold.facts_like("birch", like)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(changed(text))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        + ["-k", "everywhere or imports_no"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [("noodes = 1", 'error[unknown-key]: unknown key "noodes"'), ("nodes = 99999", "99999 nodes")],
    ids=["a key", "a limit"],
)
def test_the_message_of_a_plan_that_fails_is_shown(tmp_path: Path, line: str, message: str) -> None:
    done = kit(tmp_path, "leonardo", lambda text: re.sub(r"^nodes = 1$", line, text, flags=re.M))
    assert done.returncode == 1, done.stdout
    assert done.stdout.count("does not plan for ada") >= 2
    assert message in done.stdout
    assert "ToolFailed" not in done.stdout


def test_it_passes_on_the_sites_own_login_node(tmp_path: Path) -> None:
    """There the host name is the cluster's, and variables of its paths are not those of the kit's people."""

    here = json.dumps([f"^{re.escape(os.uname().nodename)}"])

    def this_host_with_a_variable(text: str) -> str:
        text = re.sub(r"^detect = .*$", lambda _: f"detect = {here}", text, flags=re.M)
        return re.sub(r"(\[storage.runs\]\npath = ).*", r'\1"${PSCRATCH}/runs"', text)

    done = kit(tmp_path, "isambard", this_host_with_a_variable)
    facts = (tmp_path / "hpc_birch" / "cluster.toml").read_text()
    assert f"detect = {here}" in facts
    assert "${PSCRATCH}" in facts
    assert done.returncode == 0, done.stdout
