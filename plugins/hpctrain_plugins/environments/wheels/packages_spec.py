"""What an environment of wheels is asked to hold, read once for locking and building alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs
from attrs import frozen

from hpctrain.plugin import Cluster, ConfigError, Join, Package, Pin, RunSpec, Var, Word
from hpctrain.toolbox import NATIVE, node_count, pinned_value
from hpctrain_plugins.environments.wheels.options import Built, Options

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXACT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^]]*\])?\s*===?\s*([^\s;,*]+)\s*\Z")

NODE = "nodelocal"
"""The role of each node's own disk."""
INSTALL_MINUTES = 60
"""What is downloaded, unpacked and packed again."""


@frozen(kw_only=True)
class Source:
    """One package that is compiled: of an index at an exact version, or code by path or git."""

    name: str
    version: str = ""
    package: Package
    built: Built


@frozen(kw_only=True)
class PackagesSpec:
    """Requirements by how they are installed; `user_packages` are paths or git and only copy files."""

    options: Options
    python: str
    native: bool
    packages: tuple[str, ...]
    compile: tuple[Source, ...]
    user_packages: tuple[Package, ...]
    technology: str = "venv"
    """Whose table holds the options: `[environment.venv]`."""
    program: tuple[str, ...] = ()
    """What the technology itself takes from the index: uv."""
    constraints: tuple[str, ...] = ()
    """What a resolution keeps to: requirements of packages that nobody asks for by them."""
    packed: bool = False
    """Each node unpacks its own copy."""
    spread: bool = False
    """That copy is broadcast, instead of read by each node."""

    @property
    def own_python(self) -> bool:
        """Whether its Python is fetched, instead of the site's."""
        return getattr(self.options, "own_python", False) and not self.options.python

    @property
    def fetched_python(self) -> dict[str, bool]:
        """What it adds to the keys of artifacts: nothing where the Python is the site's."""
        return {"own_python": True} if self.own_python else {}

    @property
    def wheels(self) -> tuple[str, ...]:
        """What is installed from the index, the tools that build the rest among it."""
        tools = self.options.build if self.compile or self.user_packages else ()
        build_requirements = tuple(r for source in self.compile for r in source.built.build)
        return (*self.packages, *tools, *build_requirements, *self.program)

    @property
    def named(self) -> tuple[str, ...]:
        """The distributions that the user named: those that must import."""
        user_names = tuple(p.name for p in self.user_packages if p.name)
        compiled = tuple(s.name for s in self.compile)
        return tuple(dict.fromkeys(map(normal, (*map(name_of, self.packages), *compiled, *user_names))))

    @property
    def image_minutes(self) -> int:
        """How long one job may take that installs and builds all of it."""
        return INSTALL_MINUTES + sum(source.built.minutes for source in self.compile)

    @property
    def first(self) -> tuple[str, ...]:
        """The names of those that are resolved alone."""
        return tuple(normal(name_of(r)) for r in self.options.first)


def read(run: RunSpec, cluster: Cluster, program: tuple[str, ...] = ()) -> PackagesSpec:
    """The packages that a run file asks for; every technology begins with this."""
    env = run.environment
    packages = (
        *(line.text for line in requirement_lines(run)),
        *(p.requirement for p in env.packages if p.requirement),
    )
    options = _asked_first(env.options or Options(), packages)
    is_fetched = getattr(options, "own_python", False) and not options.python
    packed = packs(options.pack, run, cluster)
    return PackagesSpec(
        options=options,
        python=env.python,
        native=cluster.arch == NATIVE and not is_fetched,  # none of the version need be here
        packages=packages,
        compile=tuple(_source(p, options) for p in env.compile),
        user_packages=tuple(p for p in env.packages if p.path or p.git),
        technology=env.use or "venv",
        program=program,
        packed=packed,
        spread=packed and spreads(run, cluster),
    )


def _asked_first(options: Options, packages: tuple[str, ...]) -> Options:
    """A version in `packages` is the one that is resolved first; a cluster's own is only the usual one."""
    pinned = {normal(name_of(r)): r for r in packages if exact(r)}

    def chosen(usual: str) -> str:
        requirement = pinned.get(normal(name_of(usual)), usual)
        # torch==2.5.1 asks for the build 2.5.1+rocm6.1 as well.
        return usual if exact(requirement) == exact(usual).partition("+")[0] else requirement

    return attrs.evolve(options, first=tuple(map(chosen, options.first)))


def exact(requirement: str) -> str:
    """The version of `name==version`, or nothing."""
    match = _EXACT.match(requirement)
    return match[1] if match else ""


def _source(package: Package, options: Options) -> Source:
    name = normal(package.name or name_of(package.requirement))
    built = next((b for n, b in options.builds.items() if normal(n) == name), Built())
    version = exact(package.requirement)
    if package.requirement and not version:
        raise ConfigError.of(
            "no-version",
            f"{package.requirement} is compiled, and its wheel is kept by its version",
            where="environment.compile",
            hint=f'compile = ["{name}==…"]',
        )
    if not name:
        raise ConfigError.of(
            "no-name",
            f"what is compiled from {package.path or package.git} has no name",
            where="environment.compile",
            hint=f'compile = [{{ name = "…", {"path" if package.path else "git"} = "…" }}]',
        )
    return Source(name=name, version=version, package=package, built=built)


def name_of(requirement: str) -> str:
    """The distribution a requirement is about."""
    match = _NAME.match(requirement.strip())
    return match.group() if match else requirement


def normal(name: str) -> str:
    """One spelling of a distribution's name: the index treats `_`, `.` and `-` alike."""
    return re.sub(r"[-_.]+", "-", name).lower()


def version(pins: tuple[Pin, ...], spec: PackagesSpec) -> str:
    """The Python of the environment, `3.11`: as asked, else as pinned."""
    return spec.python or pinned_value(pins, "python", "python")


def interpreter(spec: PackagesSpec) -> Word:
    """The Python that the environment is made from."""
    if spec.options.python:
        return spec.options.python
    if spec.python:
        return f"python{spec.python}"
    return Var("HPC_PYTHON") if spec.native else "python3"


def short(package: Package) -> str:
    """A folder name for code by path or git."""
    name = package.name or (package.path or package.git).rstrip("/").rsplit("/", 1)[-1]
    return "".join(c if c.isalnum() else "-" for c in name.removesuffix(".git")) or "code"


def step_file(name: str) -> Word:
    """Where a file of the step lies when it runs."""
    return Join(Var("HPC_RUN"), "/steps/", Var("HPC_STEP"), f"/{name}")


MOST_LINES = 10_000
"""Of a requirements file; each is looked at several times."""


@frozen(kw_only=True)
class RequirementLine:
    """One entry of a requirements file, without its comment, and where it begins."""

    text: str
    number: int
    written: str


def requirement_lines(run: RunSpec) -> Iterator[RequirementLine]:
    """The entries of the requirements file; one that ends in a backslash goes on in the next line."""
    text = run.texts.get(run.environment.requirements, "") if run.environment.requirements else ""
    first, parts = 0, ""
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        message = f"{run.environment.requirements} has {len(lines):,} lines; at most {MOST_LINES:,} are read"
        raise ConfigError.of("too-large", message, where="environment.requirements")
    for number, line in enumerate(lines, 1):
        first = first if parts else number
        parts += line
        if line.endswith("\\") and number < len(lines):
            parts = f"{parts[:-1]} "
            continue
        entry = re.sub(r"(^|\s)#.*", "", parts).strip()
        parts = ""
        if entry:
            yield RequirementLine(text=entry, number=first, written=lines[first - 1])


def packs(setting: bool | str, run: RunSpec, cluster: Cluster) -> bool:
    """Whether this run's nodes unpack: as said, or as `plan --explain startup` predicts it for so many."""
    if setting != "auto":
        return bool(setting)
    if NODE not in cluster.storage:
        return False
    from hpctrain.toolbox import SHARED_START, best_start  # a run file may say it

    ranks = max(1, cluster.hardware.gpus_per_node)
    return best_start(node_count(run.resources, cluster), ranks, node_disk=True) != SHARED_START


def spreads(run: RunSpec, cluster: Cluster) -> bool:
    """Whether one broadcast is predicted to be quicker than all these nodes reading the archive."""
    from hpctrain.toolbox import broadcast_pays  # few environments are packed

    return broadcast_pays(node_count(run.resources, cluster))
