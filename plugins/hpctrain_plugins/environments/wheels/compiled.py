"""One step per compiled package: a wheel that is kept by all that decides it, built without the network."""

from __future__ import annotations

from attrs import frozen

from hpctrain.plugin import (
    After,
    Artifact,
    Cluster,
    Cmd,
    EnvVar,
    How,
    Join,
    Layer,
    Loc,
    Need,
    Pin,
    Step,
    Var,
    Word,
    template,
    words_in,
)
from hpctrain.toolbox import pinned_value, target_arch
from hpctrain_job.offline import NOWHERE
from hpctrain_plugins.environments import pip
from hpctrain_plugins.environments.wheels import house, lists
from hpctrain_plugins.environments.wheels.packages_spec import (
    PackagesSpec,
    Source,
    name_of,
    normal,
    step_file,
    version,
)
from hpctrain_plugins.environments.wheels.ways import Way

WORK = Var("WORK")
BUILD_PREFIX = Join(WORK, "/.build")
BUILD = "HPC_BUILD"
"""The variable that holds the folder of the Python that a wheel is built with."""
NEEDS = "build"
"""The kind of pin that says what a source archive is built with."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")


@frozen(kw_only=True)
class Maker:
    """What every compile step of an environment shares."""

    spec: PackagesSpec
    way: Way
    pins: tuple[Pin, ...]
    cluster: Cluster

    def steps(self) -> tuple[Step, ...]:
        """A step for each package, in their order."""
        return tuple(map(self._step, self.spec.compile))

    def artifact(self, source: Source) -> Artifact:
        """A wheel by its source, its Python, what it is built against and how."""
        against = self._against(source)
        build = self.cluster.modules.build if self.cluster.modules else ()
        return Artifact(
            name=f"wheel-{source.name}",
            role=house.ROLE,
            inputs={
                "source": self._identity(source),
                "python": version(self.pins, self.spec),
                "way": self.way.name,
                "tools": sorted(self._tools(source)),
                "against": {s.name: self.artifact(s).key for s in self._compiled(against)},
                "modules": list(build),
                "env": dict(sorted(self._variables(source).items())),
                "interpreter": self.spec.options.python,
                "system_site": self.spec.options.system_site,
                **self.spec.fetched_python,
            },
            arch=target_arch(self.pins, self.cluster),
            pins=tuple(p for p in self.pins if self._decides(p, source, against)),
            checked=True,
        )

    def _step(self, source: Source) -> Step:
        artifact, against = self.artifact(source), self._against(source)
        arch = target_arch(self.pins, self.cluster)
        wheels = house.house(self.spec, self.way, self.pins, arch).loc
        built = [self.artifact(s) for s in self._compiled(against)]
        place = house.code_of(self.spec, self.pins).loc / source.name
        needs = {Need.TARGET, Need.GPU} if source.built.gpu else {Need.TARGET}
        return Step(
            name=f"compile-{source.name}",
            commands=(
                Cmd.of("mkdir", "-p", WORK),
                *self.way.bare(self.spec, BUILD_PREFIX, wheels),
                self._fill(wheels, [b.loc for b in built]),
                Cmd.of("cp", "-R", place, Join(WORK, "/.source")),
                Cmd.of(
                    *(Join(BUILD_PREFIX, "/bin/python"), "-m", "hpctrain_job.wheel", source.name),
                    *(Join(WORK, "/.source"), WORK),
                    *(f"--program={name}" for name in source.built.programs),
                ),
                Cmd.of("rm", "-rf", BUILD_PREFIX, Join(WORK, "/.source")),
            ),
            needs=frozenset(needs),
            makes=artifact,
            after=(
                After("wheels"),
                After("sources"),
                *(After(f"compile-{s.name}") for s in self._compiled(against)),
            ),
            minutes=source.built.minutes,
            files=lists.files({"tools": self._lines(source), "limits": self._limits()}),
            layer=self._layer(source),
        )

    def _fill(self, wheels: Loc, built: list[Loc]) -> Cmd:
        limits = ("-c", step_file("limits.txt")) if self._limits() else ()
        links: tuple[Word, ...] = tuple(word for place in built for word in ("--find-links", place))
        return Cmd.of(
            *(
                Join(BUILD_PREFIX, "/bin/python"),
                "-m",
                "hpctrain_job.pip",
                "install",
                "--quiet",
                "--no-index",
            ),
            *("--find-links", wheels, *links, *limits, "-r", step_file("tools.txt")),
        )

    def _lines(self, source: Source) -> tuple[str, ...]:
        """What the build's Python holds: its tools, and what the wheel is built against."""
        return (*self._tools(source), *self._against(source))

    def _limits(self) -> tuple[str, ...]:
        """The locked versions: what is built against torch is built against that torch."""
        compiled = {s.name for s in self.spec.compile}
        every = (p for p in self.pins if p.kind == "pypi" and p.name not in compiled)
        return tuple(f"{p.name}=={p.value.split()[0]}" for p in every)

    def _tools(self, source: Source) -> tuple[str, ...]:
        needs = pinned_value(self.pins, NEEDS, source.name).split(";")
        requirements = tuple(r.strip() for r in needs if r.strip())
        return tuple(dict.fromkeys((*self.spec.options.build, *source.built.build, *requirements)))

    def _against(self, source: Source) -> tuple[str, ...]:
        """The packages of `against` that the environment has."""
        available = {normal(name_of(r)) for r in (*self.spec.wheels, *self.spec.options.first)}
        available |= {p.name for p in self.pins if p.kind == "pypi"} | {s.name for s in self.spec.compile}
        candidates = map(normal, source.built.against)
        return tuple(name for name in candidates if name in available and name != source.name)

    def _compiled(self, against: tuple[str, ...]) -> tuple[Source, ...]:
        return tuple(s for s in self.spec.compile if s.name in against)

    def _identity(self, source: Source) -> list[str]:
        if source.version:
            return [source.name, source.version, house.digest_of(source, self.pins)]
        return [source.name, *house.identity(source.package, self.pins)]

    def _decides(self, pin: Pin, source: Source, against: tuple[str, ...]) -> bool:
        """Whether a pin decides this wheel: a rebuild of it or of a package it is built against, or a
        version of the latter."""
        if pin.kind == "rebuild":
            return normal(pin.name) in (source.name, *against)
        return pin.kind == "pypi" and pin.name in against

    def _variables(self, source: Source) -> dict[str, str]:
        return {**self.spec.options.env, **source.built.env}

    def _layer(self, source: Source) -> Layer:
        """No index, no proxy that works, and the variables of the build."""
        why = f"how {source.name} is built"
        variables = (EnvVar(name=n, value=_word(t), why=why) for n, t in self._variables(source).items())
        dead = "nothing that a build asks for can come from the network"
        proxies = (n for name in PROXIES for n in (name, name.upper()))
        return Layer(
            env=(
                *pip.layer().env,
                EnvVar(name="PIP_NO_INDEX", value="1", why="a compile step has no network"),
                *(EnvVar(name=name, value=f"http://{NOWHERE}:9", why=dead) for name in proxies),
                EnvVar(name="no_proxy", how=How.UNSET, why=dead),
                EnvVar(name="NO_PROXY", how=How.UNSET, why=dead),
                EnvVar(name="LD_PRELOAD", how=How.UNSET, why="a library of the run has no place in a build"),
                *variables,
            )
        )


def _word(text: str) -> Word:
    """`${HPC_BUILD}/include` with the build's own folder in it."""
    word = template(text)
    if Var(BUILD) not in words_in(word):
        return word
    parts = word.parts if isinstance(word, Join) else (word,)
    return Join(*(BUILD_PREFIX if part == Var(BUILD) else part for part in parts))
