"""What an environment of wheels is asked to hold, read once for locking and building alike."""

from __future__ import annotations

import re

import attrs

from hpctrain.defaults import names
from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.run import Package, RunSpec
from hpctrain.model.step import Pin
from hpctrain.model.words import Join, Var, Word
from hpctrain_plugins.environments.wheels.options import Built, Options
from hpctrain_plugins.environments.wheels.packing import packs, spreads

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXACT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^]]*\])?\s*===?\s*([^\s;,*]+)\s*\Z")


@frozen(kw_only=True)
class Source:
    """One package that is compiled: of an index at an exact version, or code by path or git."""

    name: str
    version: str = ""
    package: Package
    built: Built


@frozen(kw_only=True)
class Wants:
    """Requirements by how they are installed; `own` is code by path or git that only copies files."""

    options: Options
    python: str
    native: bool
    packages: tuple[str, ...]
    compile: tuple[Source, ...]
    own: tuple[Package, ...]
    program: tuple[str, ...] = ()
    """What the technology itself takes from the index: uv."""
    packed: bool = False
    """Each node unpacks its own copy."""
    spread: bool = False
    """That copy is broadcast, instead of read by each node."""

    @property
    def wheels(self) -> tuple[str, ...]:
        """What is installed from the index, the tools that build the rest among it."""
        tools = self.options.build if self.compile or self.own else ()
        more = tuple(r for source in self.compile for r in source.built.build)
        return (*self.packages, *tools, *more, *self.program)

    @property
    def named(self) -> tuple[str, ...]:
        """The distributions that the user named: those that must import."""
        own = tuple(p.name for p in self.own if p.name)
        compiled = tuple(s.name for s in self.compile)
        return tuple(dict.fromkeys(map(normal, (*map(name_of, self.packages), *compiled, *own))))

    @property
    def first(self) -> tuple[str, ...]:
        """The names of those that are resolved alone."""
        return tuple(normal(name_of(r)) for r in self.options.first)


def read(run: RunSpec, cluster: Cluster, program: tuple[str, ...] = ()) -> Wants:
    """The wants of a run; every technology begins with this."""
    env = run.environment
    packages = (*_lines(run), *(p.requirement for p in env.packages if p.requirement))
    options = _asked_first(env.options or Options(), packages)
    packed = packs(options.pack, run, cluster)
    return Wants(
        options=options,
        python=env.python,
        native=cluster.arch == names.NATIVE,
        packages=packages,
        compile=tuple(_source(p, options) for p in env.compile),
        own=tuple(p for p in env.packages if p.path or p.git),
        program=program,
        packed=packed,
        spread=packed and spreads(run, cluster),
    )


def _asked_first(options: Options, packages: tuple[str, ...]) -> Options:
    """A version in `packages` is the one that is resolved first; a cluster's own is only the usual one."""
    asked = {normal(name_of(r)): r for r in packages if exact(r)}

    def chosen(usual: str) -> str:
        mine = asked.get(normal(name_of(usual)), usual)
        # torch==2.5.1 asks for the build 2.5.1+rocm6.1 as well.
        return usual if exact(mine) == exact(usual).partition("+")[0] else mine

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


def version(pins: tuple[Pin, ...], wants: Wants) -> str:
    """The Python of the environment, `3.11`: as asked, else as pinned."""
    return wants.python or names.found(pins, "python", "python")


def interpreter(wants: Wants) -> Word:
    """The Python that the environment is made from."""
    if wants.options.python:
        return wants.options.python
    if wants.python:
        return f"python{wants.python}"
    return Var("HPC_PYTHON") if wants.native else "python3"


def short(package: Package) -> str:
    """A folder name for code by path or git."""
    told = package.name or (package.path or package.git).rstrip("/").rsplit("/", 1)[-1]
    return "".join(c if c.isalnum() else "-" for c in told.removesuffix(".git")) or "code"


def step_file(name: str) -> Word:
    """Where a file of the step lies when it runs."""
    return Join(Var("HPC_RUN"), "/steps/", Var("HPC_STEP"), f"/{name}")


def _lines(run: RunSpec) -> tuple[str, ...]:
    """The requirements file without comments; its `-r` and options are refused when it is resolved."""
    text = run.texts.get(run.environment.requirements, "") if run.environment.requirements else ""
    joined = text.replace("\\\n", " ")
    found = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return tuple(line for line in found if line)
