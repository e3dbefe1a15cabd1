"""`podman_hpc`: an image that podman-hpc pulls once on a login node and starts on every node of a job."""

from __future__ import annotations

import attrs

from hpctrain.plugin import (
    Artifact,
    Bind,
    Cmd,
    ConfigError,
    EnvVar,
    How,
    Join,
    Layer,
    Loc,
    Need,
    RunSpec,
    Step,
    Var,
    Word,
    hookimpl,
)

HPCTRAIN_API = 1


@attrs.frozen(kw_only=True)
class Options:
    """The keys of `[environment.podman_hpc]`."""

    image: str = ""
    """The image by its registry reference, nvcr.io/nvidia/pytorch:25.06-py3; it has bash and Python."""
    modules: tuple[str, ...] = ("gpu",)
    """What podman-hpc brings into it from the node, by its option's name: gpu, nccl-plugin, cuda-mpich."""


def marker(options: Options) -> Artifact:
    """A file that says what was pulled: the image itself lies in podman-hpc's own store."""
    return Artifact(
        name="podman-hpc", role="state", inputs={"image": options.image}, arch="any", suffix=".txt"
    )


@hookimpl
def build_env(run: RunSpec) -> list[Step]:
    """`pull` also packs the image for compute nodes, which share the store and have no registry."""
    options = run.environment.options or Options()
    if not options.image:
        where, hint = "environment.podman_hpc.image", 'image = "nvcr.io/nvidia/pytorch:25.06-py3"'
        raise ConfigError.of("no-environment", "no image is named", where=where, hint=hint)
    pull = Cmd.of("podman-hpc", "pull", options.image)
    inspect = Cmd.of(
        "podman-hpc", "image", "inspect", "--format={{.Digest}}", options.image, stdout=Var("WORK")
    )
    return [
        Step(
            name="image",
            commands=(pull, inspect),
            needs=frozenset({Need.NETWORK}),
            makes=marker(options),
            minutes=30,
        )
    ]


@hookimpl
def enter_env(run: RunSpec, binds: tuple[Bind, ...]) -> Layer:
    """The image around every command, with all that its step must see."""
    options = run.environment.options or Options()
    wrap: tuple[Word, ...] = (
        *("podman-hpc", "run", "--rm", "--entrypoint=", "--network=host", "--ipc=host"),
        *(f"--{module}" for module in options.modules),
        *("--env=HPC_*", "--env=WORK", "--env=PYTHONPATH"),
        Join("--workdir=", Var("HPC_RUN")),
        *map(_volume, binds),
        options.image,
    )
    # podman refuses a folder that nobody made yet
    folders = tuple(Cmd.of("mkdir", "-p", bind.source) for bind in binds if isinstance(bind.source, Loc))
    env = (
        EnvVar(name="PYTHONNOUSERSITE", value="1", why="packages in ~/.local would win"),
        EnvVar(name="PYTHONHOME", how=How.UNSET, why="another Python's library breaks the image's"),
    )
    return Layer(wrap=wrap, job=folders, env=env)


def _volume(bind: Bind) -> Word:
    return Join(
        "--volume=", bind.source, ":", bind.target or bind.source, *((":ro",) if bind.readonly else ())
    )
