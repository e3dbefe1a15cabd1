"""The way into the Container Engine: its description, what must be there before, what Python must not see."""

from __future__ import annotations

import attrs

from hpctrain.plugin import Bind, Cluster, Cmd, EnvVar, Layer, Pin, RunSpec
from hpctrain_plugins.environments import image, prefix
from hpctrain_plugins.environments.edf import image_request, table
from hpctrain_plugins.environments.edf.containerfile import INSIDE
from hpctrain_plugins.environments.edf.image_request import ImageRequest

WANTED = "images of this family are entered so"


def layer(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """The layer around every command that runs in the image."""
    request = image_request.read(run, cluster, pins)
    # The engine refuses a mount whose source is not there yet.
    folders = tuple(Cmd.of("mkdir", "-p", folder) for folder in image.folders(binds))
    inside = prefix.layer(INSIDE) if request.venv else Layer(env=prefix.OTHERS_KEPT_OUT)
    family = request.family
    wanted = (EnvVar(name=name, value=value, why=WANTED) for name, value in family.env.items())
    return attrs.evolve(
        inside,
        env=(*inside.env, *wanted),
        job=(*folders, *_whole(request, cluster)),
        files=table.files(run, request, binds),
        starter={"slurm": (table.WORD, *family.starter)},
    )


def _whole(request: ImageRequest, cluster: Cluster) -> tuple[Cmd, ...]:
    """Judged again in every job: there, of an accepted owner, and what its manifest says."""
    if request.options.image:
        return (Cmd.of("ls", "-L", request.options.image, stdout="/dev/null"),)
    if request.ready:
        return ()
    artifacts = (request.image, *((request.venv,) if request.venv else ()))
    return tuple(
        Cmd.of("hpc_require", artifact.loc, *cluster.owners_of(artifact.role)) for artifact in artifacts
    )
