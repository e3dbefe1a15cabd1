"""A small cluster that speaks PBS, as a distribution as pip would leave it; its machine is the stand-in."""

from __future__ import annotations

from pathlib import Path

from tests.hooks.dists import distribution

FACTS = """\
name      = "pines"
title     = "two nodes and a PBS, for tests"
scheduler = "pbs"
arch      = "x86_64"
detect    = ['.']

[[source]]
id      = "standin"
title   = "tests/standin_pbs/state.py"
no_url  = "the stand-in of these tests"
checked = "2026-11-23"
sure    = "measured"

[[verify]]
fact    = "the queues"
command = "qstat -Q"

[hardware]
source         = "standin"
gpu            = "device"
gpu_kind       = "cuda"
gpus_per_node  = 4
cores_per_node = 64
memory_gb      = 256
nodes          = 2

[[place]]
name     = "login"
provides = ["network"]
source   = "standin"
here     = true

[[place]]
name     = "compute"
provides = ["target", "gpu"]
source   = "standin"
ask      = { pbs = ["-l filesystems=home"] }

[[queue]]
name     = "capacity"
source   = "standin"
ask      = { pbs = ["-q capacity"] }
max_time = "24h"

[[queue]]
name          = "debug"
source        = "standin"
ask           = { pbs = ["-q debug"] }
max_nodes     = 1
max_time      = "1h"
jobs_per_user = 1
auto          = false

[network]
source = "standin"

[launch]
source       = "standin"
ranks        = "per_gpu"
visible      = "one"
cpus_per_gpu = 16

[policy]
source       = "standin"
poll_seconds = 1
account      = "optional"
submit_env   = ["SITE_LICENCE"]
"""
EXAMPLE = """\
name    = "pair"
cluster = "pines"

[resources]
nodes = 2
time  = "5m"

[environment]
use = ""

[train]
use = "command"
[train.command]
argv  = ["true"]
ranks = "per_gpu"
"""
ROLES = ("env", "images", "assets", "data", "checkpoints", "runs", "state")
HOOKS = '''\
"""A step that a job makes, so that a run is a chain of two jobs."""

from hpctrain.hooks.marker import hookimpl
from hpctrain.model.step import Artifact, Need, Step
from hpctrain.model.words import Cmd, Var

HPCTRAIN_API = 1


@hookimpl(tryfirst=True)
def prepare_data(name, asset, run):
    """`first` is made by a job."""
    if name != "first":
        return None
    made = Artifact(name=name, role="assets", inputs={}, arch="any")
    say = Cmd.of("bash", "-c", 'echo "$HPC_JOB" > "$WORK"', "x", Var("WORK"))
    return (Step(name=name, commands=(say,), needs=frozenset({Need.TARGET}), makes=made, minutes=1),)
'''


def write_cluster(site: Path) -> Path:
    """Write the distribution below `site` and give back `site`."""
    storage = "".join(f'[storage.{role}]\npath = "{{home}}/{role}"\nsource = "standin"\n\n' for role in ROLES)
    distribution(site, "hpctrain-pines", "0.1", {"hpctrain.clusters": {"pines": "hpc_pines"}}, {})
    package = site / "hpc_pines"
    package.mkdir()
    (package / "__init__.py").write_text(HOOKS)
    (package / "cluster.toml").write_text(f"{FACTS}\n{storage}")
    (package / "examples").mkdir()
    (package / "examples/pair.toml").write_text(EXAMPLE)
    (package / "README.md").write_text(f"# pines\n\n```toml\n{EXAMPLE}```\n")
    return site
