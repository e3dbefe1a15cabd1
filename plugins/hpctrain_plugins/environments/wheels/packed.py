"""One archive of an environment, which every node of the training job unpacks on its own disk.

At many nodes the start is thousands of small files times the nodes; one archive is one read a node, and
one read in all where the scheduler broadcasts it. The shared environment stays behind it in PATH: where a
node's disk is full, it is read from there.
"""

from __future__ import annotations

from hpctrain.plugin import (
    Artifact,
    Cluster,
    Cmd,
    ConfigError,
    EnvVar,
    File,
    How,
    Join,
    Layer,
    Loc,
    Need,
    Step,
    Var,
)
from hpctrain_plugins.environments.wheels.packages_spec import NODE, step_file

SCRIPT = """\
# unpack.sh ARCHIVE FOLDER PREFIX [COPY]: the environment on this node's own disk, whole or not at all.
set -euo pipefail
archive=$1 folder=$2 prefix=$3 copy=${4:-}
[[ ${HPC_STEP:-} == train ]] || exit 0  # other steps run on one node, some of them on a login node
umask 077
. "$HPC_RUN/code/publish.sh"
_hpc_reason=

# PATH begins there: whoever can write it, as /dev/shm is everybody's, would run code as this user.
safe() {
  HPC_OWNERS='' _hpc_folder_trusted "$folder" && return
  echo "hpctrain: $_hpc_reason; remove it, or set  pack = false  in [environment.venv]" >&2
  exit 7
}

safe
[[ ! -e $folder/bin ]] || exit 0

shared() {  # never a reason to end the job
  echo "hpctrain: ${HOSTNAME:-this node} reads its environment from the shared disk: $1" >&2
  [[ -z ${new:-} ]] || rm -rf -- "$new"
  exit 0
}

# A broadcast that failed may leave a part of the file; one of another user's is not what was broadcast.
[[ ! -L $copy && -O $copy ]] || copy=
if [[ $copy && $(stat -Lc %s -- "$copy") == "$(stat -Lc %s -- "$archive")" ]]; then archive=$copy; fi

mkdir -p -- "${folder%/*}" 2>/dev/null || shared "$folder cannot be made"
safe
new=$(mktemp -d -- "$folder.XXXXXX") || shared "$folder cannot be made"
tar -xf "$archive" -C "$new" || shared "$archive was not unpacked"
[[ ! $copy ]] || rm -f -- "$copy"
# The scripts of bin name the Python of the place where they were installed.
from=$(readlink -f -- "$prefix")
{ grep -rlIF -- "$from/" "$new/bin" || :; } | xargs -r sed -i -- "s|$from/|$folder/|g"
mv -T -- "$new" "$folder" 2>/dev/null || rm -rf -- "$new"  # another job of ours was first
"""


def archive(artifact: Artifact) -> Artifact:
    """The archive, by the key of what is in it."""
    return Artifact(
        name="packed", role=artifact.role, inputs={"env": artifact.key}, arch=artifact.arch, suffix=".tar"
    )


def copy(artifact: Artifact) -> Loc:
    """Where the broadcast puts the archive: right in the role's folder, which the site has made."""
    return Loc(NODE, archive(artifact).filename)


def place(artifact: Artifact) -> Loc:
    """Where a node finds its own copy."""
    return Loc(NODE, f"hpctrain/{artifact.filename}")


def step(artifact: Artifact) -> Step:
    """Archive the published environment; a node unpacks faster than a disk reads what is compressed."""
    return Step(
        name="pack",
        commands=(Cmd.of("tar", "-cf", Var("WORK"), "-C", Join(artifact.loc, "/"), "."),),
        needs=frozenset({Need.TARGET}),
        makes=archive(artifact),
        minutes=30,
    )


def layer(artifact: Artifact, *, spread: bool) -> Layer:
    """Unpack once a node before the ranks start; its Python goes first where it is there."""
    copies = (copy(artifact),) if spread else ()
    return Layer(
        env=(
            EnvVar(
                name="PATH",
                value=place(artifact) / "bin",
                how=How.PREPEND,
                why="each node starts Python from its own disk, where it was unpacked",
            ),
        ),
        job=tuple(Cmd.of("hpc_spread", archive(artifact).loc, target) for target in copies),
        node=(
            Cmd.of(
                "bash", step_file("unpack.sh"), archive(artifact).loc, place(artifact), artifact.loc, *copies
            ),
        ),
        files=(File(path="unpack.sh", body=(SCRIPT,)),),
    )


def check(cluster: Cluster) -> None:
    """Refuse where no node has a disk of its own."""
    if NODE not in cluster.storage:
        raise ConfigError.of(
            "no-node-disk",
            f"{cluster.name} names no disk of its nodes, so that a packed environment has no place",
            where="environment.pack",
            hint="pack = false",
        )
