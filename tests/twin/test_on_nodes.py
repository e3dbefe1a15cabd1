"""exec on a twin whose compute nodes have no internet: one node, the site's words, the command's own code."""

from __future__ import annotations

import pytest

from tests.twin.fixtures import Start
from tests.twin.user import User

pytestmark = pytest.mark.twin


def test_exec_reaches_a_compute_node_of_frontier(twin: Start, torch: None) -> None:
    user = User(twin("frontier"), folder="exec")
    on = ("--on", "frontier", "--account", user.twin.site.overlay.account)
    done = user.hpctrain("exec", "run.toml", *on, "--time", "5m", "--", "bash", "-c",
                         'echo "$SLURM_JOB_PARTITION $HPC_GPUS"; exit 6')  # fmt: skip
    assert (done.returncode, done.stdout) == (6, "batch 1\n"), done.stderr
    late = user.hpctrain("exec", "run.toml", *on, "--time", "3h", "--nodes", "8", "--", "true")
    assert late.returncode == 2
    assert "3h is longer than frontier allows for 8 nodes" in late.stderr
    assert "help: --time 2h\n" in late.stderr
    refused = user.hpctrain("run", "run.toml", *on, "--here")
    assert refused.returncode == 6
    assert "in no job of yours" in refused.stderr
