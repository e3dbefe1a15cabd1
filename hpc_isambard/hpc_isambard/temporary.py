"""Temporary files of a job: a folder of its user's own in the memory of each node.

The site's login nodes set TMPDIR to a folder that its compute nodes do not have, or lose while a job runs;
Python's tempfile then fails wherever a program is started by it, `import torch` first of all.
"""

from __future__ import annotations

from hpctrain.plugin import Cluster, Cmd, EnvVar, File, Join, Layer, Scope, Var, template

SCRIPT = """\
# temporary.sh FOLDER: made for its user alone; somebody else's of that name is not used.
set -euo pipefail
[[ -d $1 ]] || mkdir -m 700 -- "$1" || [[ -d $1 ]]  # another job of yours may make it now
[[ -O $1 && ! -L $1 ]] || { echo "$1 is not yours; [env] TMPDIR names another" >&2; exit 1; }
"""
NAME = "temporary.sh"


def layer(cluster: Cluster) -> Layer:
    """The variable for what runs on a node, and the script that makes its folder there."""
    facts = cluster.facts["tmpdir"]
    folder = template(facts["path"])
    script = Join(Var("HPC_RUN"), "/steps/", Var("HPC_STEP"), f"/{NAME}")
    why = f"the site's own, {facts['sites_own']}, was missing on nodes, or vanished while a job ran"
    return Layer(
        env=(EnvVar(name="TMPDIR", value=folder, at=Scope.NODE, why=why, fact=facts["source"]),),
        node=(Cmd.of("bash", script, folder),),
        files=(File(path=NAME, body=(SCRIPT,)),),
    )
