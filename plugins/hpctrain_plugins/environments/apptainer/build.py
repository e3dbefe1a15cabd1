"""The steps of an environment in an image: `image` here, `inspect` where nobody asked it, `env`, `verify`."""

from __future__ import annotations

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
    Package,
    Pin,
    RunSpec,
    Step,
    Var,
    Word,
    locs_in,
)
from hpctrain.toolbox import clone_source, copy_source, pinned_commit
from hpctrain_plugins.environments import pip
from hpctrain_plugins.environments.apptainer import image_request
from hpctrain_plugins.environments.apptainer.image_request import INSIDE, ImageRequest
from hpctrain_plugins.environments.image import proof
from hpctrain_plugins.environments.wheels import lists
from hpctrain_plugins.environments.wheels.packages_spec import short, step_file

WORK = Var("WORK")
VENV = Join(WORK, ".venv")
"""Beside what will be published, in the build's own folder: it goes with the build, however that ends."""
PYTHON = f"{INSIDE}/bin/python"
FRESH = ("--no-cache-dir",)
HAS = "has.txt"
CONSTRAINT = step_file("constraint.txt")
"""The constraint file of the step, which is written in the image."""
OPENED = ("chmod", "-R", "a+rX")
"""A job's umask closed it to everybody but its builder; who may read the file itself is its role's to say."""


def steps(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """All that must be made before somebody can enter."""
    request = image_request.read(run, cluster, pins)
    pull_steps = () if request.image.path else (_pull(request),)
    overlay = request.overlay
    if overlay is None:
        return pull_steps
    env = _env(request, overlay, cluster)
    return (
        *pull_steps,
        *((_inspect(request, cluster),) if request.has is None else ()),
        env,
        proof.step(
            request.imported, {"overlay": overlay.key}, request.arch, cluster, request.options.expect, (env,)
        ),
    )


def _pull(request: ImageRequest) -> Step:
    """The image for the target, though the login node may be another machine; refused if it is another's."""
    pull = ("apptainer", "pull", "--arch", request.oci, WORK, request.image.address)
    check = Cmd.of(Var("HPC_PYTHON"), "-m", "hpctrain_job.sif", WORK, request.arch)
    folders = (Join(WORK, ".cache"), Join(WORK, ".tmp"))
    return Step(
        name="image",
        commands=(Cmd.of("mkdir", "-p", *folders), Cmd(pull), Cmd.of("rm", "-rf", *folders), check),
        needs=frozenset({Need.NETWORK}),
        makes=request.pulled,
        minutes=60,
        layer=Layer(
            env=(
                EnvVar(
                    name="APPTAINER_CACHEDIR",
                    value=folders[0],
                    why="the cache would fill the home directory",
                ),
                EnvVar(
                    name="APPTAINER_TMPDIR",
                    value=folders[1],
                    why="temporary files of a pull are as large as the image",
                ),
            )
        ),
    )


def _inspect(request: ImageRequest, cluster: Cluster) -> Step:
    """What the image has, asked in the image."""
    print_it = _inside(request, (), "python3", "-m", "hpctrain_job.packages", stdout=WORK)
    return Step(
        name="inspect",
        commands=(print_it,),
        needs=frozenset({Need.TARGET}),
        makes=request.listed,
        layer=_inside_layer(request, cluster),
    )


def _env(request: ImageRequest, artifact: Artifact, cluster: Cluster) -> Step:
    ext3 = request.options.overlay == "ext3"
    room: tuple[Word, ...] = (Join("--overlay=", WORK),) if ext3 else (_bind(VENV, INSIDE),)
    size = ("--sparse", "--size", str(request.options.size_mb), "--create-dir", INSIDE)
    begin = Cmd.of("apptainer", "overlay", "create", *size, WORK) if ext3 else Cmd.of("mkdir", VENV)
    commands = (
        begin,
        _inside(request, (), *pip.judged(_listed(request), CONSTRAINT, request.replaced)),
        _inside(request, room, "python3", "-m", "venv", "--system-site-packages", INSIDE),
        *(_inside(request, room, *words) for words in _installs(request, artifact)),
        *_compiled(request, room, pinned=bool(request.pypi)),
        *_install_user_packages(request, room),
        *((_inside(request, room, *OPENED, INSIDE),) if ext3 else _squash()),
    )
    return Step(
        name="env",
        commands=commands,
        needs=frozenset({Need.NETWORK, Need.TARGET}),
        makes=artifact,
        minutes=request.spec.image_minutes,
        files=(*lists.files(lists.of(request.spec, artifact.pins)), *_has(request)),
        layer=_inside_layer(request, cluster),
    )


def _inside_layer(request: ImageRequest, cluster: Cluster) -> Layer:
    """Around what runs in the image alone: it may have been purged or changed since the plan, and what lies
    in ~/.local is not its own."""
    return attrs.evolve(pip.layer(), job=(request.judged(cluster),))


def _has(request: ImageRequest) -> tuple[File, ...]:
    if request.has is None:
        return ()
    return (File(path=HAS, body=("\n".join(request.has.lines()) + "\n",)),)


def _listed(request: ImageRequest) -> Word:
    """The list of what the image has: of the lock or the run file, else as the step `inspect` made it."""
    return request.listed.loc if request.has is None else step_file(HAS)


def _installs(request: ImageRequest, artifact: Artifact) -> list[tuple[Word, ...]]:
    """pip in the venv, with what the image lacks."""
    requirement_lists = lists.of(request.spec, artifact.pins)
    installs = lists.install(request.spec, requirement_lists, None)
    return [(*pip.install(PYTHON, CONSTRAINT), *FRESH, *words) for words in installs]


def _compiled(request: ImageRequest, room: tuple[Word, ...], *, pinned: bool) -> tuple[Cmd, ...]:
    """Archives of the index, built in the image against its own torch."""
    commands: list[Cmd] = []
    where = lists.where(request.spec, None)
    complete = ("--no-deps",) if pinned else ()
    for source in request.spec.compile:
        if not source.version:
            continue
        if source.built.build:
            tools = (*pip.install(PYTHON, CONSTRAINT), *FRESH, *where, *source.built.build)
            commands.append(_inside(request, room, *tools))
        begin = (*pip.install(PYTHON, CONSTRAINT, source.built.env), *FRESH, *where, *complete)
        words = ("--no-build-isolation", "--no-binary", source.name, f"{source.name}=={source.version}")
        commands.append(_inside(request, room, *begin, *words))
    return tuple(commands)


def _install_user_packages(request: ImageRequest, room: tuple[Word, ...]) -> tuple[Cmd, ...]:
    """The user's own packages: brought outside, where git is, and installed inside."""
    commands: list[Cmd] = []
    for number, package in enumerate(request.user_packages):
        place = Join(WORK, f".src-{number}")
        if package.git:
            commands += clone_source(
                package.git, pinned_commit(request.pins, package.git, package.rev), place
            )
        else:
            commands += copy_source(package.path, place, sha256=package.sha256, python="python3")
        commands.append(_inside(request, (*room, _bind(place, _inner(package))), *_install_own(package)))
    return tuple(commands)


def _install_own(package: Package) -> tuple[Word, ...]:
    return (*pip.install(PYTHON), *FRESH, "--no-deps", "--no-build-isolation", _inner(package))


def _inner(package: Package) -> str:
    """Where a package's source is seen while it is installed."""
    return f"/tmp/own-{short(package)}"  # noqa: S108  (inside the image)


def _squash() -> tuple[Cmd, ...]:
    pack = ("-noappend", "-comp", "xz", "-b", "1M", "-no-xattrs", "-no-progress", "-quiet")
    return (
        Cmd.of(*OPENED, VENV),
        Cmd.of("mksquashfs", VENV, WORK, *pack),
        Cmd.of("rm", "-rf", VENV),
    )


def _inside(request: ImageRequest, room: tuple[Word, ...], *argv: Word, **fields: Word) -> Cmd:
    links = (_bind(link) for link in request.options.find_links if link.startswith("/"))
    roles = sorted({word.role for word in locs_in(argv)})
    binds = (_bind(Var("HPC_RUN")), *links, *(_bind(Loc(role)) for role in roles))
    return Cmd.of("apptainer", "--silent", "exec", *binds, *room, request.file, *argv, **fields)


def _bind(source: Word, target: Word = "") -> Word:
    return Join("--bind=", source, *((":", target) if target else ()))
