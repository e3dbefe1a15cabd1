"""The way into the Container Engine: its description, what must be there before, what Python must not see."""

from __future__ import annotations

import attrs

from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import Bind, EnvVar, How, Layer
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain.model.words import Cmd
from hpctrain_plugins.environments import image, prefix
from hpctrain_plugins.environments.edf import table, wants
from hpctrain_plugins.environments.edf.containerfile import INSIDE
from hpctrain_plugins.environments.edf.wants import Asked


def layer(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """Around every command inside."""
    asked = wants.read(run, cluster, pins)
    # The engine refuses a mount whose source is not there yet.
    folders = tuple(Cmd.of("mkdir", "-p", folder) for folder in image.folders(binds))
    return attrs.evolve(
        prefix.layer(INSIDE) if asked.venv else Layer(env=_plain()),
        job=(*folders, *_whole(asked, cluster)),
        files=table.files(run, asked, binds),
        starter={"slurm": (table.WORD,)},
    )


def _whole(asked: Asked, cluster: Cluster) -> tuple[Cmd, ...]:
    """Judged again in every job: there, of an accepted owner, and what its manifest says."""
    if asked.options.image:
        return (Cmd.of("ls", "-L", asked.options.image, stdout="/dev/null"),)
    if asked.ready:
        return ()
    made = (asked.image, *((asked.venv,) if asked.venv else ()))
    return tuple(Cmd.of("hpc_require", one.loc, *image.owners(cluster, one.role)) for one in made)


def _plain() -> tuple[EnvVar, ...]:
    return (
        EnvVar(
            name="PYTHONNOUSERSITE",
            value="1",
            why="packages in ~/.local would win over the image's, and home may be mounted",
        ),
        EnvVar(name="PYTHONHOME", how=How.UNSET, why="the host's Python is not the image's"),
    )
