"""Where facts name a folder for logs, each training's log has a link there; a link is no reason to fail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import attrs

from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Cluster, Storage
from hpctrain.model.run import RunSpec
from hpctrain.model.words import Cmd, Join, Loc, Var
from hpctrain.plan.planner import make
from tests.conftest import ROOT


def links(run: RunSpec, cluster: Cluster, hooks: Hooks) -> list[tuple[str, Cmd]]:
    """Steps whose job makes a link, with the line that does it."""
    plan = make(run, cluster, (), hooks.call)
    lines = ((s.name, line) for s in plan.steps for line in s.around.job if isinstance(line, Cmd))
    return [(name, line) for name, line in lines if line.argv[0] == "hpc_link"]


def test_the_training_alone_has_a_link(run: RunSpec, cluster: Cluster, hooks: Hooks) -> None:
    assert links(run, cluster, hooks) == []
    logs = Storage(path="/fs/logs", source="doc")
    ((step, line),) = links(run, attrs.evolve(cluster, storage={**cluster.storage, "logs": logs}), hooks)
    assert step == "train"
    assert line.argv[1:] == (
        Join(Var("HPC_RUN"), "/logs/train.log"),
        Join(Loc("logs"), f"/{run.name}_", Var("HPC_JOB"), ".out"),
    )


def test_a_link_that_cannot_be_made_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    helper = ROOT / "core/hpctrain/render/job.sh"
    line = f"set -eu; . {helper}; hpc_link /x/train.log logs/r_7.out; hpc_link /x/y file/below; echo on"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "on\n"
    assert "hpctrain: no link at file/below" in done.stderr
    assert (tmp_path / "logs/r_7.out").readlink() == Path("/x/train.log")
