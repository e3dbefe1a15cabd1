"""What comes before a build without network: the wheel house, and the sources of what is compiled."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.defaults import names, sources
from hpctrain.model.run import Package
from hpctrain.model.step import Artifact, Need, Pin, Step
from hpctrain.model.words import Cmd, Join, Var, Word
from hpctrain_plugins.environments.wheels import lists, pip_env
from hpctrain_plugins.environments.wheels.options import deciding
from hpctrain_plugins.environments.wheels.wants import Source, Wants, normal, short, version
from hpctrain_plugins.environments.wheels.ways import Way

ROLE = "env"
WORK = Var("WORK")
GLIBC_OLDEST = 17


def wheels(wants: Wants, way: Way, pins: tuple[Pin, ...], arch: str) -> Step:
    """Download for the target what the lists name; nothing of it is run."""
    made = house(wants, way, pins, arch)
    found = lists.of(wants, pins)
    return Step(
        name="wheels",
        commands=(
            Cmd.of("mkdir", "-p", WORK),
            *_downloads(wants, found, made),
            *way.fetch(wants, WORK),
        ),
        needs=frozenset({Need.NETWORK}),
        makes=made,
        minutes=60,
        files=lists.files(found),
        layer=pip_env.layer(),
    )


def house(wants: Wants, way: Way, pins: tuple[Pin, ...], arch: str) -> Artifact:
    """The wheels by their pins: what is compiled, and how, is no part of it."""
    compiled = {s.name for s in wants.compile}
    return Artifact(
        name="wheels",
        role=ROLE,
        inputs={
            "python": version(pins, wants),
            "packages": sorted(wants.wheels),
            "way": way.name,
            "options": {**deciding(wants.options), "build": []},
        },
        arch=arch,
        pins=tuple(p for p in pins if p.kind in ("pypi", "rebuild") and normal(p.name) not in compiled),
    )


def code(wants: Wants, pins: tuple[Pin, ...]) -> Step | None:
    """The sources: archives at their hashes, repositories at their commits, folders by content."""
    if not (wants.own or wants.compile):
        return None
    archives = tuple(s for s in wants.compile if s.version)
    trees = [(s.name, s.package) for s in wants.compile if not s.version]
    trees += [(own_of(n, p), p) for n, p in enumerate(wants.own)]
    return Step(
        name="sources",
        commands=(
            Cmd.of("mkdir", "-p", WORK),
            *(_archives(wants, archives, pins) if archives else ()),
            *(line for folder, package in trees for line in copied(package, Join(WORK, f"/{folder}"), pins)),
        ),
        needs=frozenset({Need.NETWORK}),
        makes=code_of(wants, pins),
        minutes=30,
        layer=pip_env.layer(),
    )


def code_of(wants: Wants, pins: tuple[Pin, ...]) -> Artifact:
    """The sources by their content."""
    return Artifact(
        name="sources",
        role=ROLE,
        inputs={
            "archives": sorted([s.name, s.version, digest_of(s, pins)] for s in wants.compile if s.version),
            "trees": [identity(s.package, pins) for s in wants.compile if not s.version],
            "own": [identity(p, pins) for p in wants.own],
        },
        arch="any",
    )


def identity(package: Package, pins: tuple[Pin, ...]) -> list[str]:
    """Code by path or git, by what it is now."""
    commit = names.commit(pins, package.git, package.rev) if package.git else ""
    return [package.name, package.git, commit, package.sha256 or package.path]


def digest_of(source: Source, pins: Iterable[Pin]) -> str:
    """The hash of an archive, as it was pinned."""
    marks = names.found(pins, "pypi", source.name).split()[1:]
    return next((m.removeprefix("sha256:") for m in marks if m.startswith("sha256:")), "")


def own_of(number: int, package: Package) -> str:
    """The folder of the user's own code among the sources."""
    return f"{number}-{short(package)}"


def copied(package: Package, into: Word, pins: tuple[Pin, ...]) -> tuple[Cmd, ...]:
    """The user's own code: building it in place would write into the user's tree."""
    if package.git:
        return sources.clone(package.git, names.commit(pins, package.git, package.rev), into)
    return sources.copy(package.path, into, sha256=package.sha256)


def _archives(wants: Wants, compiled: tuple[Source, ...], pins: tuple[Pin, ...]) -> tuple[Cmd, ...]:
    index = ("--index-url", wants.options.index_url) if wants.options.index_url else ()
    links = (Join("--find-links=", link) for link in wants.options.find_links)
    exact = ("=".join((f"{s.name}=={s.version}", *filter(None, (digest_of(s, pins),)))) for s in compiled)
    return (Cmd.of(Var("HPC_PYTHON"), "-m", "hpctrain_job.sdist", WORK, *exact, *index, *links),)


def _downloads(wants: Wants, found: lists.Lists, made: Artifact) -> Iterable[Cmd]:
    fits = _target(wants, made)
    for words in lists.install(wants, found, None):
        # What nobody pinned brings what it needs, as it always did for wheels of this computer.
        alone = () if "--no-deps" in words or "vendor" in found else ("--no-deps",)
        yield Cmd.of(
            *(Var("HPC_PYTHON"), "-m", "hpctrain_job.pip", "download", "--quiet", "--dest", WORK),
            *(*fits, *alone, *words),
        )


def _target(wants: Wants, made: Artifact) -> tuple[str, ...]:
    """pip's words for a machine that is not this one; it expands no tag by itself."""
    python = made.inputs["python"]
    newest = int(wants.options.glibc.split(".")[1])
    tags = [f"manylinux_2_{minor}_{made.arch}" for minor in range(newest, GLIBC_OLDEST - 1, -1)]
    tags += [f"manylinux2014_{made.arch}", f"linux_{made.arch}"]
    version = ("--python-version", python) if python else ()
    platforms = () if wants.native else tuple(f"--platform={tag}" for tag in tags)
    return ("--only-binary=:all:", *version, *platforms)
