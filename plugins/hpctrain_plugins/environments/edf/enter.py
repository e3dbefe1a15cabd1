"""The way into the Container Engine: its description, what must be there before, what Python must not see."""

from __future__ import annotations

import attrs

from hpctrain.plugin import Bind, Cluster, Cmd, EnvVar, Layer, Pin, RunSpec, Var
from hpctrain_plugins.environments import image, prefix
from hpctrain_plugins.environments.edf import image_request, table
from hpctrain_plugins.environments.edf.containerfile import INSIDE
from hpctrain_plugins.environments.edf.image_request import ImageRequest

FAMILY_WORDS = "images of this family are entered so"


def layer(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """The layer around every command that runs in the image."""
    request = image_request.read(run, cluster, pins)
    # The engine refuses a mount whose source is not there yet.
    folders = tuple(Cmd.of("mkdir", "-p", folder) for folder in image.folders(binds))
    inside = prefix.layer(INSIDE) if request.venv else Layer(env=prefix.OTHERS_KEPT_OUT)
    family = request.family
    variables = (EnvVar(name=name, value=value, why=FAMILY_WORDS) for name, value in family.env.items())
    return attrs.evolve(
        inside,
        env=(*inside.env, *variables),
        job=(*folders, *_whole(request, cluster)),
        files=table.files(run, request, binds),
        starter={"slurm": (table.word(request), *family.starter)},
    )


def _whole(request: ImageRequest, cluster: Cluster) -> tuple[Cmd, ...]:
    """Judged again in every job: there, of an accepted owner, and what its manifest says."""
    if request.options.image and not request.stored:
        return (Cmd.of("ls", "-L", request.options.image, stdout="/dev/null"),)
    if request.ready:
        return ()
    if request.stored:
        look = (Var("HPC_PYTHON"), "-m", "hpctrain_job.sarus", request.reference, request.image.loc)
        return (Cmd(look),)
    artifacts = (request.image, *((request.venv,) if request.venv else ()))
    return tuple(
        Cmd.of("hpc_require", artifact.loc, *cluster.owners_of(artifact.role)) for artifact in artifacts
    )
