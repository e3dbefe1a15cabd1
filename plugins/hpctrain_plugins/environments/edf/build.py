"""The steps that make what the Container Engine enters, and the one that verifies it.

podman's store lies in the node's memory, so each file is built and written by one job.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hpctrain.plugin import (
    Artifact,
    Cluster,
    Cmd,
    EnvVar,
    File,
    Join,
    Layer,
    Loc,
    Need,
    Pin,
    Quote,
    RunSpec,
    Step,
    Var,
    Word,
)
from hpctrain.toolbox import target_arch
from hpctrain_plugins.environments.edf import containerfile, image_request
from hpctrain_plugins.environments.edf.containerfile import HAS, JOB
from hpctrain_plugins.environments.edf.image_request import ImageRequest
from hpctrain_plugins.environments.image import Image, proof
from hpctrain_plugins.environments.wheels import lists
from hpctrain_plugins.environments.wheels.options import Expect
from hpctrain_plugins.environments.wheels.packages_spec import INSTALL_MINUTES

WORK = Var("WORK")
STEP = Join(Var("HPC_RUN"), "/steps/", Var("HPC_STEP"))
CONTEXT = Join(STEP, "/context")
OUTPUT_FOLDER = Join(WORK, ".made")
"""Beside what will be published, in the build's own folder: it goes with the build, however that ends."""
LOCAL = Loc("nodelocal", "hpctrain")
"""Podman's store must lie in the node's memory: overlay does not work on Lustre."""
STORAGE = """[storage]
driver = "overlay"
runroot = """
TAG = "localhost/hpctrain:run"
"""Seen by this job alone."""
NETWORK_AND_TARGET = frozenset({Need.NETWORK, Need.TARGET})
NONE: lists.Lists = {}


def steps(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """A list of the base where nobody asked it, the image, the venv where one is asked for, the proof."""
    request = image_request.read(run, cluster, pins)
    build_steps: tuple[Step, ...] = ()
    if not request.ready:
        image = _base(request, request.untouched) if request.untouched else _image(request)
        listed = (_inspect(request, request.base),) if request.inspects and request.base else ()
        build_steps = (*listed, image, *((_venv(request, request.venv),) if request.venv else ()))
    return (*build_steps, _verify(request, cluster, build_steps))


def _inspect(request: ImageRequest, base: Image) -> Step:
    """What the base has, asked in the base."""
    return _step(
        "inspect",
        request.listed,
        (
            _job(),
            *_out(request, OUTPUT_FOLDER),
            Cmd.of("cp", Join(OUTPUT_FOLDER, f"/{HAS}.txt"), WORK),
            Cmd.of("rm", "-rf", OUTPUT_FOLDER),
        ),
        containerfile.inspecting(base.plain),
    )


def _base(request: ImageRequest, base: Image) -> Step:
    """The step that pulls the base image and imports it unchanged."""
    pull = Cmd.of("podman", "pull", "--quiet", base.plain)
    return _step("image", request.image, (pull, *_published(request, base.plain)))


def _image(request: ImageRequest) -> Step:
    """One image of the base and the packages."""
    build = Cmd.of("podman", "build", *_options(request), "--tag", TAG, *_where())
    commands = (*_brought(request), build, *_published(request, TAG))
    return _built("image", request, request.image, commands)


def _venv(request: ImageRequest, artifact: Artifact) -> Step:
    """The packages alone, made in the base at the path where they are mounted."""
    pack = ("-noappend", "-comp", "zstd", "-all-root", "-no-xattrs", "-no-progress", "-quiet")
    # A job's umask closed the folder to everybody but the builder, and who is mounted as root is nobody's.
    opened = Cmd.of("chmod", "-R", "a+rX", OUTPUT_FOLDER)
    packed = (opened, Cmd.of("mksquashfs", OUTPUT_FOLDER, WORK, *pack), Cmd.of("rm", "-rf", OUTPUT_FOLDER))
    commands = (*_brought(request), *_out(request, OUTPUT_FOLDER), *packed)
    return _built("env", request, artifact, commands)


def _built(name: str, request: ImageRequest, artifact: Artifact, commands: tuple[Cmd, ...]) -> Step:
    """A step that does what the Containerfile says, for as long as its builds may take."""
    recipe = request.recipe
    return _step(name, artifact, commands, recipe.text, recipe.files, request.spec.image_minutes)


def _step(
    name: str,
    artifact: Artifact,
    commands: tuple[Cmd, ...],
    text: str = "",
    files: lists.Lists = NONE,
    minutes: int = INSTALL_MINUTES,
) -> Step:
    """A job with a store of its own, and a folder for what podman copies."""
    recipe_files = (File(path="Containerfile", body=(text,)),) if text else ()
    return Step(
        name=name,
        commands=(
            Cmd.of("rm", "-rf", CONTEXT),
            Cmd.of("mkdir", "-p", CONTEXT),
            *commands,
            Cmd.of("rm", "-rf", CONTEXT),
        ),
        needs=NETWORK_AND_TARGET,
        makes=artifact,
        minutes=minutes,
        files=(*recipe_files, *lists.files(files), _storage()),
        layer=_tools(),
    )


def _brought(request: ImageRequest) -> tuple[Cmd, ...]:
    """What the Containerfile copies: lists, and the user's own code."""
    recipe = request.recipe
    return (
        *((_job(),) if request.judges else ()),
        *(Cmd.of("cp", Join(STEP, f"/{name}.txt"), CONTEXT) for name in recipe.files),
        *((Cmd.of("cp", request.listed.loc, Join(CONTEXT, f"/{HAS}.txt")),) if request.inspects else ()),
        *(_users_code(request) if recipe.user_packages else ()),
    )


def _job() -> Cmd:
    return Cmd.of("cp", Join(Var("HPC_RUN"), f"/code/{JOB}"), CONTEXT)


def _users_code(request: ImageRequest) -> Iterator[Cmd]:
    """Each package of the user's own, as a folder that the Containerfile copies."""
    from hpctrain_plugins.environments.wheels import house  # most images have none

    for number, package in enumerate(request.recipe.user_packages):
        yield from house.copied(package, Join(CONTEXT, f"/src-{number}"), request.pins)


def _out(request: ImageRequest, folder: Word) -> tuple[Cmd, ...]:
    """Build, and lay what comes out into a folder: no image is made."""
    out = Join("--output=type=local,dest=", folder)
    return (Cmd.of("podman", "build", *_options(request), out, *_where()),)


def _where() -> tuple[Word, ...]:
    return ("--file", Join(STEP, "/Containerfile"), CONTEXT)


def _options(request: ImageRequest) -> tuple[str, ...]:
    """The user's own, and their folders of wheels, which are seen in the build at their paths."""
    links = (f"--volume={link}:{link}:ro" for link in request.options.find_links if link.startswith("/"))
    return (*request.options.build_args, *links)


def _published(request: ImageRequest, image: str) -> tuple[Cmd, ...]:
    """From podman's store to where the engine finds it: a file, or the user's store with a note of it."""
    if not request.stored:
        return (Cmd.of("enroot", "import", "-x", "mount", "-o", WORK, f"podman://{image}"),)
    return (
        Cmd.of("podman", "tag", image, request.reference),
        Cmd.of("sarusctl", "migrate", request.reference),
        Cmd.of("sarusctl", "images", stdout=WORK),
    )


def _storage() -> File:
    body = (STORAGE, LOCAL / "podman/run", "\ngraphroot = ", LOCAL / "podman/root", "\n")
    return File(path="storage.conf", body=body, quote=Quote.TOML)


def _tools() -> Layer:
    """Where podman and enroot keep what they need; your own storage.conf is neither read nor written."""
    variables: dict[str, tuple[Word, str]] = {
        "CONTAINERS_STORAGE_CONF": (Join(STEP, "/storage.conf"), "podman's store lies in the node's memory"),
        "ENROOT_CACHE_PATH": (LOCAL / "enroot/cache", "layers are unpacked in the node's memory"),
        "ENROOT_DATA_PATH": (LOCAL / "enroot/data", "nothing is left in your home"),
        "ENROOT_RUNTIME_PATH": (LOCAL / "enroot/run", "nothing is left in your home"),
        "XDG_RUNTIME_DIR": (LOCAL / "runtime", "a job without a login session has none, and podman needs it"),
    }
    folders = tuple(value for name, (value, _) in variables.items() if name != "CONTAINERS_STORAGE_CONF")
    return Layer(
        env=tuple(EnvVar(name=name, value=value, why=why) for name, (value, why) in variables.items()),
        task=(Cmd.of("mkdir", "-p", *folders),),
    )


def _verify(request: ImageRequest, cluster: Cluster, build_steps: tuple[Step, ...]) -> Step:
    """Python starts in the image where it will train, imports what the run names, and sees a GPU."""
    options = attrs.asdict(attrs.evolve(request.options, variables=(), families={}, expect=Expect()))
    keys = [step.makes.key for step in build_steps if step.makes and step.name != "inspect"]
    inputs = {"options": options, "image": keys}
    arch, expect = target_arch(request.pins, cluster), request.options.expect
    return proof.step(request.imported, inputs, arch, cluster, expect, build_steps)
