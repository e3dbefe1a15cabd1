"""The steps of an environment in an image: `image` here, `inspect` where nobody knows it, then `env`."""

from __future__ import annotations

from hpctrain.defaults import names, sources
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import EnvVar, File, Layer
from hpctrain.model.run import Package, RunSpec
from hpctrain.model.step import Artifact, Need, Pin, Step
from hpctrain.model.words import Cmd, Join, Loc, Var, Word, locs_in
from hpctrain_plugins.environments.apptainer import wants
from hpctrain_plugins.environments.apptainer.wants import INSIDE, Asked
from hpctrain_plugins.environments.image import known
from hpctrain_plugins.environments.wheels import lists, pip_env
from hpctrain_plugins.environments.wheels.wants import short, step_file

WORK = Var("WORK")
VENV = Join(WORK, ".venv")
"""Beside what will be published, in the build's own folder: it goes with the build, however that ends."""
PYTHON = f"{INSIDE}/bin/python"
HAS = "has.txt"
OPENED = ("chmod", "-R", "a+rX")
"""A job's umask closed it to everybody but its builder; who may read the file itself is its role's to say."""


def steps(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """All that must be made before somebody can enter."""
    asked = wants.read(run, cluster, pins)
    found = () if asked.image.path else (_pull(asked),)
    overlay = asked.overlay
    if overlay is None:
        return found
    unknown = asked.has is None
    return (*found, *((_inspect(asked),) if unknown else ()), _env(asked, overlay, inspected=unknown))


def _pull(asked: Asked) -> Step:
    """The image for the target, though the login node may be another machine; refused if it is another's."""
    pull = ("apptainer", "pull", "--arch", asked.oci, WORK, asked.image.address)
    check = Cmd.of(Var("HPC_PYTHON"), "-m", "hpctrain_job.sif", WORK, asked.arch)
    own = (Join(WORK, ".cache"), Join(WORK, ".tmp"))
    return Step(
        name="image",
        commands=(Cmd.of("mkdir", "-p", *own), Cmd(pull), Cmd.of("rm", "-rf", *own), check),
        needs=frozenset({Need.NETWORK}),
        makes=asked.pulled,
        minutes=60,
        layer=Layer(
            env=(
                EnvVar(
                    name="APPTAINER_CACHEDIR",
                    value=own[0],
                    why="the cache would fill the home directory",
                ),
                EnvVar(
                    name="APPTAINER_TMPDIR",
                    value=own[1],
                    why="temporary files of a pull are as large as the image",
                ),
            )
        ),
    )


def _inspect(asked: Asked) -> Step:
    """What the image has, asked in the image."""
    print_it = _inside(asked, (), "python3", "-m", "hpctrain_job.packages", stdout=WORK)
    return Step(name="inspect", commands=(print_it,), needs=frozenset({Need.TARGET}), makes=asked.listed)


def _env(asked: Asked, made: Artifact, *, inspected: bool) -> Step:
    ext3 = asked.options.overlay == "ext3"
    room: tuple[Word, ...] = (Join("--overlay=", WORK),) if ext3 else (_bind(VENV, INSIDE),)
    size = ("--sparse", "--size", str(asked.options.size_mb), "--create-dir", INSIDE)
    begin = Cmd.of("apptainer", "overlay", "create", *size, WORK) if ext3 else Cmd.of("mkdir", VENV)
    commands = (
        *_there(asked),
        begin,
        _inside(asked, room, "python3", "-m", "venv", "--system-site-packages", INSIDE),
        *(_inside(asked, room, *words) for words in _installs(asked, made, inspected=inspected)),
        *_compiled(asked, room),
        *_own(asked, room),
        *((_inside(asked, room, *OPENED, INSIDE),) if ext3 else _squash()),
    )
    return Step(
        name="env",
        commands=commands,
        needs=frozenset({Need.NETWORK, Need.TARGET}),
        makes=made,
        minutes=60,
        files=(*lists.files(lists.of(asked.wants, made.pins)), *_has(asked)),
        layer=pip_env.layer(),
    )


def _there(asked: Asked) -> tuple[Cmd, ...]:
    """An image by its path may have been purged since the plan."""
    return (Cmd.of("ls", "-L", asked.file, stdout="/dev/null"),)


def _has(asked: Asked) -> tuple[File, ...]:
    if asked.has is None:
        return ()
    return (File(path=HAS, body=("\n".join(known.listed(asked.has)) + "\n",)),)


def _installs(asked: Asked, made: Artifact, *, inspected: bool) -> list[tuple[Word, ...]]:
    """pip in the venv: first the proof that the image is what the lock stands on, then what it lacks."""
    pip: tuple[Word, ...] = (PYTHON, "-m", "pip", "install", "--no-cache-dir")
    found: list[tuple[Word, ...]] = []
    keep: tuple[Word, ...] = ()
    if asked.has is not None:
        found.append((*pip, "--no-deps", "--no-index", "-r", step_file(HAS)))
    if not made.pins:
        keep = ("--constraint", asked.listed.loc if inspected else step_file(HAS))
    wanted = lists.of(asked.wants, made.pins)
    return [*found, *((*pip, *keep, *words) for words in lists.install(asked.wants, wanted, None))]


def _compiled(asked: Asked, room: tuple[Word, ...]) -> tuple[Cmd, ...]:
    """Archives of the index, built in the image against its own torch."""
    found: list[Cmd] = []
    pip: tuple[Word, ...] = (PYTHON, "-m", "pip", "install", "--no-cache-dir")
    for source in asked.wants.compile:
        if not source.version:
            continue
        if source.built.build:
            found.append(_inside(asked, room, *pip, *source.built.build))
        env = ("env", *(f"{name}={value}" for name, value in source.built.env.items()))
        words = ("--no-build-isolation", "--no-binary", source.name, f"{source.name}=={source.version}")
        found.append(_inside(asked, room, *env, *pip, *words))
    return tuple(found)


def _own(asked: Asked, room: tuple[Word, ...]) -> tuple[Cmd, ...]:
    """The user's own packages: brought outside, where git is, and installed inside."""
    found: list[Cmd] = []
    for number, package in enumerate(asked.own):
        place = Join(WORK, f".src-{number}")
        if package.git:
            found += sources.clone(package.git, names.commit(asked.pins, package.git, package.rev), place)
        else:
            found += sources.copy(package.path, place, sha256=package.sha256, python="python3")
        found.append(_inside(asked, (*room, _bind(place, _inner(package))), *_install_own(package)))
    return tuple(found)


def _install_own(package: Package) -> tuple[Word, ...]:
    quiet = ("--no-cache-dir", "--no-deps", "--no-build-isolation")
    return (PYTHON, "-m", "pip", "install", *quiet, _inner(package))


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


def _inside(asked: Asked, room: tuple[Word, ...], *argv: Word, **fields: Word) -> Cmd:
    links = (_bind(link) for link in asked.options.find_links if link.startswith("/"))
    roles = sorted({word.role for word in locs_in(argv)})
    seen = (_bind(Var("HPC_RUN")), *links, *(_bind(Loc(role)) for role in roles))
    return Cmd.of("apptainer", "--silent", "exec", *seen, *room, asked.file, *argv, **fields)


def _bind(source: Word, target: Word = "") -> Word:
    return Join("--bind=", source, *((":", target) if target else ()))
