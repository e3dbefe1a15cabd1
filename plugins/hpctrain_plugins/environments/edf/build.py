"""The steps that make what the Container Engine enters, and the one that verifies it.

podman's store lies in the node's memory, so each file is built and written by one job.
"""

from __future__ import annotations

import attrs

from hpctrain.defaults import names
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import EnvVar, File, Layer, Quote
from hpctrain.model.run import RunSpec
from hpctrain.model.step import After, Artifact, Need, Pin, Step
from hpctrain.model.words import Cmd, Join, Loc, Var, Word
from hpctrain_plugins.environments.edf import containerfile, wants
from hpctrain_plugins.environments.edf.containerfile import HAS, JOB
from hpctrain_plugins.environments.edf.wants import Asked
from hpctrain_plugins.environments.image import Image
from hpctrain_plugins.environments.wheels import house, lists

WORK = Var("WORK")
STEP = Join(Var("HPC_RUN"), "/steps/", Var("HPC_STEP"))
CONTEXT = Join(STEP, "/context")
MADE = Join(WORK, ".made")
"""Beside what will be published, in the build's own folder: it goes with the build, however that ends."""
LOCAL = Loc("nodelocal", "hpctrain")
"""Podman's store must lie in the node's memory: overlay does not work on Lustre."""
STORAGE = """[storage]
driver = "overlay"
runroot = """
TAG = "localhost/hpctrain:run"
"""Seen by this job alone."""
BOTH = frozenset({Need.NETWORK, Need.TARGET})
NONE: lists.Lists = {}


def steps(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """A list of the base where nobody knows it, the image, the venv where one is asked for, the proof."""
    asked = wants.read(run, cluster, pins)
    made: tuple[Step, ...] = ()
    if not asked.ready:
        image = _base(asked, asked.untouched) if asked.untouched else _image(asked)
        listed = (_inspect(asked, asked.base),) if asked.inspects and asked.base else ()
        made = (*listed, image, *((_venv(asked, asked.venv),) if asked.venv else ()))
    return (*made, _verify(asked, names.arch(pins, cluster), made))


def _inspect(asked: Asked, base: Image) -> Step:
    """What the base has, asked in the base."""
    return _step(
        "inspect",
        asked.listed,
        (
            Cmd.of("cp", Join(Var("HPC_RUN"), f"/code/{JOB}"), CONTEXT),
            *_out(asked, MADE),
            Cmd.of("cp", Join(MADE, f"/{HAS}.txt"), WORK),
            Cmd.of("rm", "-rf", MADE),
        ),
        containerfile.inspecting(base.plain),
    )


def _base(asked: Asked, base: Image) -> Step:
    """The base as it is."""
    return _step("image", asked.image, (Cmd.of("podman", "pull", "--quiet", base.plain), _import(base.plain)))


def _image(asked: Asked) -> Step:
    """One image of the base and the packages."""
    made = asked.recipe
    build = Cmd.of("podman", "build", *_options(asked), "--tag", TAG, *_where())
    return _step("image", asked.image, (*_brought(asked), build, _import(TAG)), made.text, made.files)


def _venv(asked: Asked, makes: Artifact) -> Step:
    """The packages alone, made in the base at the path where they are mounted."""
    made = asked.recipe
    pack = ("-noappend", "-comp", "zstd", "-all-root", "-no-xattrs", "-no-progress", "-quiet")
    # A job's umask closed the folder to everybody but the builder, and who is mounted as root is nobody's.
    opened = Cmd.of("chmod", "-R", "a+rX", MADE)
    packed = (opened, Cmd.of("mksquashfs", MADE, WORK, *pack), Cmd.of("rm", "-rf", MADE))
    commands = (*_brought(asked), *_out(asked, MADE), *packed)
    return _step("env", makes, commands, made.text, made.files)


def _step(
    name: str, makes: Artifact, commands: tuple[Cmd, ...], text: str = "", files: lists.Lists = NONE
) -> Step:
    """A job with a store of its own, and a folder for what podman copies."""
    own = (File(path="Containerfile", body=(text,)),) if text else ()
    return Step(
        name=name,
        commands=(
            Cmd.of("rm", "-rf", CONTEXT),
            Cmd.of("mkdir", "-p", CONTEXT),
            *commands,
            Cmd.of("rm", "-rf", CONTEXT),
        ),
        needs=BOTH,
        makes=makes,
        minutes=60,
        files=(*own, *lists.files(files), _storage()),
        layer=_tools(),
    )


def _brought(asked: Asked) -> tuple[Cmd, ...]:
    """What the Containerfile copies: lists, and the user's own code."""
    has = asked.listed.loc if asked.inspects else None
    made = asked.recipe
    return (
        *(Cmd.of("cp", Join(STEP, f"/{name}.txt"), CONTEXT) for name in made.files),
        *((Cmd.of("cp", has, Join(CONTEXT, f"/{HAS}.txt")),) if has else ()),
        *(
            line
            for number, package in enumerate(made.own)
            for line in house.copied(package, Join(CONTEXT, f"/src-{number}"), asked.pins)
        ),
    )


def _out(asked: Asked, folder: Word) -> tuple[Cmd, ...]:
    """Build, and lay what comes out into a folder: no image is made."""
    out = Join("--output=type=local,dest=", folder)
    return (Cmd.of("podman", "build", *_options(asked), out, *_where()),)


def _where() -> tuple[Word, ...]:
    return ("--file", Join(STEP, "/Containerfile"), CONTEXT)


def _options(asked: Asked) -> tuple[str, ...]:
    """The user's own, and their folders of wheels, which are seen in the build at their paths."""
    links = (f"--volume={link}:{link}:ro" for link in asked.options.find_links if link.startswith("/"))
    return (*asked.options.build_args, *links)


def _import(image: str) -> Cmd:
    return Cmd.of("enroot", "import", "-x", "mount", "-o", WORK, f"podman://{image}")


def _storage() -> File:
    body = (STORAGE, LOCAL / "podman/run", "\ngraphroot = ", LOCAL / "podman/root", "\n")
    return File(path="storage.conf", body=body, quote=Quote.TOML)


def _tools() -> Layer:
    """Where podman and enroot keep what they need; your own storage.conf is neither read nor written."""
    said: dict[str, tuple[Word, str]] = {
        "CONTAINERS_STORAGE_CONF": (Join(STEP, "/storage.conf"), "podman's store lies in the node's memory"),
        "ENROOT_CACHE_PATH": (LOCAL / "enroot/cache", "layers are unpacked in the node's memory"),
        "ENROOT_DATA_PATH": (LOCAL / "enroot/data", "nothing is left in your home"),
        "ENROOT_RUNTIME_PATH": (LOCAL / "enroot/run", "nothing is left in your home"),
        "XDG_RUNTIME_DIR": (LOCAL / "runtime", "a job without a login session has none, and podman needs it"),
    }
    folders = tuple(value for name, (value, _) in said.items() if name != "CONTAINERS_STORAGE_CONF")
    return Layer(
        env=tuple(EnvVar(name=name, value=value, why=why) for name, (value, why) in said.items()),
        task=(Cmd.of("mkdir", "-p", *folders),),
    )


def _verify(asked: Asked, arch: str, made: tuple[Step, ...]) -> Step:
    """Python starts in the image where it will train, and imports what the run names."""
    named = asked.wants.named
    options = attrs.asdict(attrs.evolve(asked.options, variables=()))
    keys = [step.makes.key for step in made if step.makes and step.name != "inspect"]
    inputs = {"imports": list(named), "options": options, "image": keys}
    return Step(
        name="verify",
        commands=(Cmd.of("python3", "-m", "hpctrain_job.imports", *named, stdout=WORK),),
        needs=frozenset({Need.TARGET}),
        inside=True,
        makes=Artifact(name="verified", role="env", inputs=inputs, arch=arch, suffix=".txt"),
        after=(After(made[-1].name),) if made else (),
    )
