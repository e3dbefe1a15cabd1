"""The rig as a cluster: a distribution as pip would leave it, facts and one hook of its own."""

from __future__ import annotations

from pathlib import Path

from tests.hooks.dists import distribution

FACTS = """\
name      = "rig"
title     = "a Slurm for tests"
scheduler = "slurm"
arch      = "x86_64"
detect    = ['^login$']

[[source]]
id      = "conf"
title   = "tests/rig/conf.py"
checked = "2026-11-20"
sure    = "measured"

[hardware]
source         = "conf"
gpu            = "device"
gpus_per_node  = 4
cores_per_node = 64
memory_gb      = 480
nodes          = 2

[[place]]
name     = "login"
provides = ["network"]
source   = "conf"
here     = true

[[place]]
name     = "compute"
provides = ["target", "gpu"]
source   = "conf"

[[queue]]
name     = "batch"
source   = "conf"
ask      = { slurm = ["--partition=batch"] }
max_time = "24h"

[network]
source = "conf"

[launch]
source      = "conf"
gpu_request = "gres"

[policy]
source       = "conf"
poll_seconds = 1
account      = "none"
"""
ROLES = ("env", "images", "assets", "data", "checkpoints", "runs", "state")
HOOKS = '''\
"""The rig, and a step of the login node that must wait for a job."""

import attrs

from hpctrain.hooks.marker import hookimpl
from hpctrain.model.step import After, Artifact, Need, Step
from hpctrain.model.words import Cmd, Var

HPCTRAIN_API = 1
NETWORK = frozenset({Need.NETWORK})


@hookimpl(tryfirst=True)
def prepare_data(name, asset, run):
    """`first` is made by a job, `later` on the login node behind it."""
    if name == "first":
        return (_step(name, frozenset({Need.TARGET}), ()),)
    if name == "later":
        return (_step(name, NETWORK, (After("first"),)),)
    return None


def _step(name, needs, after):
    made = Artifact(name=name, role="assets", inputs={}, arch="any")
    say = Cmd.of("bash", "-c", 'echo "$HPC_JOB" > "$WORK"', "x", Var("WORK"))
    return Step(name=name, commands=(say,), needs=needs, makes=made, after=after, minutes=1)
'''


def write_cluster(site: Path) -> Path:
    """Write the distribution below `site` and give back `site`."""
    storage = "".join(f'[storage.{role}]\npath = "{{home}}/{role}"\nsource = "conf"\n\n' for role in ROLES)
    entries = {"hpctrain.clusters": {"rig": "hpc_rig"}}
    distribution(site, "hpctrain-rig", "0.1", entries, {})
    package = site / "hpc_rig"
    package.mkdir()
    (package / "__init__.py").write_text(HOOKS)
    (package / "cluster.toml").write_text(f"{FACTS}\n{storage}")
    return site
