"""Where planning fails, the kit shows what the command said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain.cli import scaffold
from tests.patience import PATIENCE


@pytest.mark.parametrize(
    ("line", "said"),
    [("noodes = 1", 'error[unknown-key]: unknown key "noodes"'), ("nodes = 99999", "99999 nodes")],
    ids=["a key", "a limit"],
)
def test_the_message_of_a_plan_that_fails_is_shown(tmp_path: Path, line: str, said: str) -> None:
    info = tmp_path / "hpctrain_birch-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: hpctrain-birch\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[hpctrain.clusters]\nbirch = hpc_birch\n")
    for path, text in scaffold.plugin("birch", "leonardo").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(re.sub(r"^nodes = 1$", line, text, flags=re.M))
    pytest_here = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    done = subprocess.run(
        [*pytest_here, "-k", "everywhere or imports_no"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
    )
    assert done.returncode == 1, done.stdout
    assert done.stdout.count("does not plan for ada") >= 2
    assert said in done.stdout
    assert "ToolFailed" not in done.stdout
