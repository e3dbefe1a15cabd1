"""What comes before a build without network: the wheel house, and the sources of what is compiled."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.plugin import Artifact, Cmd, Join, Need, Package, Pin, Step, Var, Word
from hpctrain.toolbox import clone_source, copy_source, pinned_commit, pinned_value
from hpctrain_plugins.environments import pip
from hpctrain_plugins.environments.wheels import lists
from hpctrain_plugins.environments.wheels.options import deciding
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, Source, normal, short, version
from hpctrain_plugins.environments.wheels.ways import Way

ROLE = "env"
WORK = Var("WORK")
GLIBC_OLDEST = 17


def wheels(spec: PackagesSpec, way: Way, pins: tuple[Pin, ...], arch: str) -> Step:
    """Download for the target what the lists name; nothing of it is run."""
    artifact = house(spec, way, pins, arch)
    requirement_lists = lists.of(spec, pins)
    return Step(
        name="wheels",
        commands=(
            Cmd.of("mkdir", "-p", WORK),
            *_downloads(spec, requirement_lists, artifact),
            *way.fetch(spec, WORK),
        ),
        needs=frozenset({Need.NETWORK}),
        makes=artifact,
        minutes=60,
        files=lists.files(requirement_lists),
        layer=pip.layer(),
    )


def house(spec: PackagesSpec, way: Way, pins: tuple[Pin, ...], arch: str) -> Artifact:
    """The wheels by their pins: what is compiled, and how, is no part of it."""
    compiled = {s.name for s in spec.compile}
    return Artifact(
        name="wheels",
        role=ROLE,
        inputs={
            "python": version(pins, spec),
            "packages": sorted(spec.wheels),
            "way": way.name,
            "options": {**deciding(spec.options), "build": []},
            **spec.fetched_python,
        },
        arch=arch,
        pins=tuple(p for p in pins if p.kind in ("pypi", "rebuild") and normal(p.name) not in compiled),
    )


def code(spec: PackagesSpec, pins: tuple[Pin, ...]) -> Step | None:
    """The sources: archives at their hashes, repositories at their commits, folders by content."""
    if not (spec.user_packages or spec.compile):
        return None
    archives = tuple(s for s in spec.compile if s.version)
    trees = [(s.name, s.package) for s in spec.compile if not s.version]
    trees += [(own_of(n, p), p) for n, p in enumerate(spec.user_packages)]
    return Step(
        name="sources",
        commands=(
            Cmd.of("mkdir", "-p", WORK),
            *(_archives(spec, archives, pins) if archives else ()),
            *(line for folder, package in trees for line in copied(package, Join(WORK, f"/{folder}"), pins)),
        ),
        needs=frozenset({Need.NETWORK}),
        makes=code_of(spec, pins),
        minutes=30,
        layer=pip.layer(),
    )


def code_of(spec: PackagesSpec, pins: tuple[Pin, ...]) -> Artifact:
    """The folder of all sources, named by their content."""
    return Artifact(
        name="sources",
        role=ROLE,
        inputs={
            "archives": sorted([s.name, s.version, digest_of(s, pins)] for s in spec.compile if s.version),
            "trees": [identity(s.package, pins) for s in spec.compile if not s.version],
            "own": [identity(p, pins) for p in spec.user_packages],
        },
        arch="any",
    )


def identity(package: Package, pins: tuple[Pin, ...]) -> list[str]:
    """Code by path or git, by what it is now."""
    commit = pinned_commit(pins, package.git, package.rev) if package.git else ""
    return [package.name, package.git, commit, package.sha256 or package.path]


def digest_of(source: Source, pins: Iterable[Pin]) -> str:
    """The hash of an archive, as it was pinned."""
    marks = pinned_value(pins, "pypi", source.name).split()[1:]
    return next((m.removeprefix("sha256:") for m in marks if m.startswith("sha256:")), "")


def own_of(number: int, package: Package) -> str:
    """The folder of the user's own code among the sources."""
    return f"{number}-{short(package)}"


def copied(package: Package, into: Word, pins: tuple[Pin, ...]) -> tuple[Cmd, ...]:
    """The user's own code: building it in place would write into the user's tree."""
    if package.git:
        return clone_source(package.git, pinned_commit(pins, package.git, package.rev), into)
    return copy_source(package.path, into, sha256=package.sha256)


def _archives(spec: PackagesSpec, compiled: tuple[Source, ...], pins: tuple[Pin, ...]) -> tuple[Cmd, ...]:
    index = ("--index-url", spec.options.index_url) if spec.options.index_url else ()
    links = (Join("--find-links=", link) for link in spec.options.find_links)
    exact = ("=".join((f"{s.name}=={s.version}", *filter(None, (digest_of(s, pins),)))) for s in compiled)
    return (Cmd.of(Var("HPC_PYTHON"), "-m", "hpctrain_job.sdist", WORK, *exact, *index, *links),)


def _downloads(spec: PackagesSpec, requirement_lists: lists.Lists, artifact: Artifact) -> Iterable[Cmd]:
    fits = _target(spec, artifact)
    for words in lists.install(spec, requirement_lists, None):
        # What nobody pinned brings what it needs, as it always did for wheels of this computer.
        no_deps = () if "--no-deps" in words or "vendor" in requirement_lists else ("--no-deps",)
        yield Cmd.of(
            *(Var("HPC_PYTHON"), "-m", "hpctrain_job.pip", "download", "--quiet", "--dest", WORK),
            *(*fits, *no_deps, *words),
        )


def _target(spec: PackagesSpec, artifact: Artifact) -> tuple[str, ...]:
    """pip's words for a machine that is not this one; it expands no tag by itself."""
    python = artifact.inputs["python"]
    newest = int(spec.options.glibc.split(".")[1])
    tags = [f"manylinux_2_{minor}_{artifact.arch}" for minor in range(newest, GLIBC_OLDEST - 1, -1)]
    tags += [f"manylinux2014_{artifact.arch}", f"linux_{artifact.arch}"]
    version = ("--python-version", python) if python else ()
    platforms = () if spec.native else tuple(f"--platform={tag}" for tag in tags)
    return ("--only-binary=:all:", *version, *platforms)
