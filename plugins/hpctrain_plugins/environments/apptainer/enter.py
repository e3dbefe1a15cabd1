"""The way into an image: what is bound, which overlay, and what training adds.

No variable goes through an option of Apptainer, which splits at commas: the task's script sets them inside.
"""

from __future__ import annotations

import attrs

from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import At, Bind, EnvVar, Layer
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin, Step
from hpctrain.model.words import Cmd, Join, Loc, Secret, Word
from hpctrain_plugins.environments import image, prefix
from hpctrain_plugins.environments.apptainer import wants, words
from hpctrain_plugins.environments.apptainer.wants import INSIDE

STATE = Bind(source=Loc("state"), readonly=True)


def layer(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """Around every command inside: image, overlay, roles."""
    asked = wants.read(run, cluster, pins)
    made = asked.overlay
    seen = (*image.roles(binds, cluster), *((STATE,) if run.secrets else ()))
    ready = [Cmd.of("mkdir", "-p", folder) for folder in image.folders(seen)]
    there = Cmd.of("ls", "-L", asked.file, stdout="/dev/null")
    # Judged again in every job: its owner and its sums. A flipped bit would be a wrong result, not an error.
    whole = (Cmd.of("hpc_require", made.loc, *image.owners(cluster, made.role)),) if made else ()
    wrap: tuple[Word, ...] = (
        "apptainer",
        "--silent",
        "exec",
        *words.GPU_FLAG[cluster.hardware.gpu_kind],
    )
    inside = prefix.layer(INSIDE) if made else Layer()
    return attrs.evolve(
        inside,
        wrap=(*wrap, *map(words.option, seen), *(_mount(made.loc) if made else ()), asked.file),
        job=(*ready, there, *whole),
    )


def training(run: RunSpec, cluster: Cluster, step: Step) -> Layer:
    """The host's fabric libraries on several nodes; the token under the name that older programs read."""
    env = []
    fabric = image.fabric_binds(cluster) if step.launch.nodes > 1 else ()
    if fabric:
        env.append(
            EnvVar(
                name="APPTAINER_BIND",
                value=Join(*_joined(fabric)),
                at=At.NODE,
                why="the image's own libraries do not know this fabric; modules say where the host's lie",
            )
        )
    if "huggingface" in run.secrets:
        env.append(
            EnvVar(
                name="HUGGING_FACE_HUB_TOKEN",
                value=Secret("huggingface"),
                why="older programs read the token under this name",
            )
        )
    return Layer(env=tuple(env))


def _joined(binds: tuple[Bind, ...]) -> list[Word]:
    return [word for n, bind in enumerate(binds) for word in ((",",) if n else ()) + words.spec(bind)]


def _mount(overlay: Loc) -> tuple[Word, ...]:
    if overlay.path.endswith(".img"):
        return (Join("--overlay=", overlay, ":ro"),)
    return (Join("--bind=", overlay, f":{INSIDE}:image-src=/"),)
