"""The way into an image: what is bound, which overlay, and what training adds.

No variable goes through an option of Apptainer, which splits at commas: the task's script sets them inside.
"""

from __future__ import annotations

import attrs

from hpctrain.plugin import (
    Bind,
    Cluster,
    Cmd,
    EnvVar,
    Join,
    Layer,
    Loc,
    Pin,
    RunSpec,
    Scope,
    Secret,
    Step,
    Word,
)
from hpctrain_plugins.environments import image, prefix
from hpctrain_plugins.environments.apptainer import image_request, words
from hpctrain_plugins.environments.apptainer.image_request import INSIDE


def layer(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """Around every command inside: image, overlay, roles."""
    request = image_request.read(run, cluster, pins)
    artifact = request.overlay
    visible_binds = image.roles(binds, cluster)
    ready = [Cmd.of("mkdir", "-p", folder) for folder in image.folders(visible_binds)]
    # Judged again in every job: its owner and its sums. A flipped bit would be a wrong result, not an error.
    whole = (Cmd.of("hpc_require", artifact.loc, *cluster.owners_of(artifact.role)),) if artifact else ()
    wrap: tuple[Word, ...] = (
        "apptainer",
        "--silent",
        "exec",
        *words.GPU_FLAG[cluster.hardware.gpu_kind],
    )
    inside = prefix.layer(INSIDE) if artifact else Layer(env=prefix.OTHERS_KEPT_OUT)
    return attrs.evolve(
        inside,
        wrap=(
            *wrap,
            *map(words.option, visible_binds),
            *(_mount(artifact.loc) if artifact else ()),
            request.file,
        ),
        job=(*ready, request.judged(cluster), *whole),
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
                at=Scope.NODE,
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
