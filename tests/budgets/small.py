"""A cluster that is everywhere, a run without preparation, and a stand-in for sbatch."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import attrs

CLUSTER = """\
name = "tiny"
title = "a cluster that is everywhere"
scheduler = "slurm"
arch = "x86_64"
detect = ["."]
[[source]]
id = "here"
title = "the test"
checked = "2026-11-20"
sure = "inferred"
[hardware]
source = "here"
gpu = "none"
gpu_kind = "cpu"
[[place]]
name = "login"
provides = ["network", "target"]
source = "here"
arch = "x86_64"
here = true
[[place]]
name = "compute"
provides = ["target", "gpu"]
source = "here"
arch = "x86_64"
[[queue]]
name = "batch"
source = "here"
max_time = "1h"
[storage.runs]
path = "{home}/runs"
source = "here"
[storage.env]
path = "{home}/env"
source = "here"
[storage.checkpoints]
path = "{home}/checkpoints"
source = "here"
[launch]
source = "here"
ranks = "per_node"
[network]
source = "here"
fabric = "tcp"
[policy]
source = "here"
account = "none"
"""
RUN = """\
name = "start"
cluster = "tiny"
[resources]
time = "5m"
[environment]
use = "ready"
[environment.ready]
prefix = "/usr"
[train]
use = "command"
[train.command]
argv = ["true"]
"""
# A stand-in: it notes the CPU time (ns) that its caller had used when sbatch would have begun.
SBATCH = """\
#!/bin/sh
cat /proc/$PPID/task/*/schedstat >>"$0.notes"
echo 4711
"""


@attrs.frozen
class Started:
    """A folder with `run.toml`, and surroundings in which `hpctrain submit` starts the stand-in."""

    env: Mapping[str, str]
    notes: Path

    def seconds(self) -> float:
        """The CPU time that its caller had used when sbatch was started last."""
        lines = self.notes.read_text().splitlines()
        self.notes.unlink()
        return sum(int(line.split()[0]) for line in lines) / 1e9


def small_site(folder: Path) -> Started:
    """Write it all: nothing has to be built, sbatch is the first program that starts."""
    site, programs, home = (folder / name for name in ("site", "bin", "home"))
    info = site / "acme_tiny-0.1.dist-info"
    for made in (info, site / "tiny", programs, home):
        made.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tiny\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[hpctrain.clusters]\ntiny = tiny\n")
    (site / "tiny/__init__.py").write_text("HPCTRAIN_API = 1\n")
    (site / "tiny/cluster.toml").write_text(CLUSTER)
    (folder / "run.toml").write_text(RUN)
    for name in ("sbatch", "srun"):  # submitit asks whether there is an srun
        (programs / name).write_text(SBATCH)
        (programs / name).chmod(stat.S_IRWXU)
    env = {
        "HOME": str(home),
        "USER": "tester",
        "LANG": "C.UTF-8",
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(site),
    }
    return Started(env, programs / "sbatch.notes")
