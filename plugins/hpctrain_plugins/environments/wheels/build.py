"""The steps of an environment of wheels, the same for every technology.

Where one place has network and target and nothing is compiled: `env` alone. Else `wheels` and
`sources` where the network is, `compile-NAME` and `env` where the target is; then `verify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
from attrs import frozen

from hpctrain.plugin import (
    After,
    Artifact,
    Cluster,
    Cmd,
    File,
    Join,
    Layer,
    Loc,
    Need,
    Pin,
    RunSpec,
    Step,
    Var,
)
from hpctrain.toolbox import git_pin_name, target_arch
from hpctrain_plugins.environments import pip, prefix
from hpctrain_plugins.environments.wheels import house, lists, packages_spec, verified
from hpctrain_plugins.environments.wheels.options import deciding
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, normal
from hpctrain_plugins.environments.wheels.ways import Way

if TYPE_CHECKING:
    from hpctrain_plugins.environments.wheels.compiled import Maker  # most environments compile nothing

WORK = Var("WORK")
NETWORK_AND_TARGET = frozenset({Need.NETWORK, Need.TARGET})


@frozen(kw_only=True)
class Building:
    """One environment: what is wanted, how, from which pins, where."""

    spec: PackagesSpec
    way: Way
    pins: tuple[Pin, ...]
    cluster: Cluster

    @property
    def maker(self) -> Maker:
        """Who compiles; loaded where something is."""
        from hpctrain_plugins.environments.wheels.compiled import Maker  # most environments compile nothing

        return Maker(spec=self.spec, way=self.way, pins=self.pins, cluster=self.cluster)

    @property
    def arch(self) -> str:
        """The architecture of the training nodes."""
        return target_arch(self.pins, self.cluster)

    @property
    def housed(self) -> bool:
        """Whether wheels are collected in a folder before the environment is made."""
        together = any(set(place.provides) >= NETWORK_AND_TARGET for place in self.cluster.place)
        return self.way.housed or bool(self.spec.compile) or not together

    def steps(self) -> tuple[Step, ...]:
        """The steps that build the environment, in their order: fetch, compile, install, pack, verify."""
        artifact = self.artifact()
        proof = (
            (verified.step(self.spec, self.cluster, artifact, prefix.python(artifact.loc)),)
            if verified.on_gpu(self.spec, self.cluster)
            else ()
        )
        if not self.housed:
            return (self._env(NETWORK_AND_TARGET, None), *self._packed(), *proof)
        wheels = house.wheels(self.spec, self.way, self.pins, self.arch)
        code = house.code(self.spec, self.pins)
        fetched = (wheels, attrs.evolve(code, after=(After("wheels"),))) if code else (wheels,)
        compiled = self.maker.steps() if self.spec.compile else ()
        before = tuple(After(s.name) for s in (*fetched, *compiled))
        assert wheels.makes is not None
        env = attrs.evolve(self._env(frozenset({Need.TARGET}), wheels.makes.loc), after=before)
        return (*fetched, *compiled, env, *self._packed(), *proof)

    def artifact(self) -> Artifact:
        """The environment by what goes into it."""
        spec = self.spec
        git = {git_pin_name(p.git, p.rev) for p in spec.user_packages if p.git}
        compiled = {s.name for s in spec.compile}
        inputs: dict[str, Any] = {
            "python": packages_spec.version(self.pins, spec),
            "packages": sorted(spec.wheels),
            "compile": [self.maker.artifact(s).key for s in spec.compile],
            "own": [[p.name, p.git, p.rev, p.sha256 or p.path] for p in spec.user_packages],
            # `verify` decides nothing, and stays so that environments of earlier releases are found.
            "options": {**deciding(spec.options), "verify": True},
            **spec.fetched_python,
        }
        return Artifact(
            name=self.way.name,
            role=house.ROLE,
            inputs=inputs,
            arch=self.arch,
            pins=tuple(p for p in self.pins if _decides(p, git, compiled)),
        )

    def layer(self) -> Layer:
        """The layer that brings a command into the environment."""
        artifact = self.artifact()
        # Judged again in every job: a link that was good when the run was submitted may be another's now.
        trusted = Cmd.of("hpc_trust", artifact.loc, *self.cluster.owners_of(artifact.role))
        layer = attrs.evolve(prefix.layer(artifact.loc), job=(trusted,))
        if not self.spec.packed:
            return layer
        from hpctrain_plugins.environments.wheels import packed  # most environments are not packed

        packed_layer = packed.layer(artifact, spread=self.spec.spread)
        return attrs.evolve(
            packed_layer, env=(*layer.env, *packed_layer.env), job=(*layer.job, *packed_layer.job)
        )

    def _packed(self) -> tuple[Step, ...]:
        if not self.spec.packed:
            return ()
        from hpctrain_plugins.environments.wheels import packed  # most environments are not packed

        packed.check(self.cluster)
        return (packed.step(self.artifact()),)

    def _env(self, needs: frozenset[Need], wheels: Loc | None) -> Step:
        requirement_lists = lists.of(self.spec, self.pins)
        way = self.way
        return Step(
            name="env",
            commands=(
                *way.begin(self.spec, WORK, wheels),
                *(
                    way.pip(WORK, "install", *words)
                    for words in lists.install(self.spec, requirement_lists, wheels)
                ),
                *self._compiled(),
                *self._install_user_packages(wheels),
                *verified.in_build(self.spec, way, WORK),
                *way.finish(WORK),
            ),
            needs=needs,
            makes=self.artifact(),
            minutes=60,
            files=(*lists.files(requirement_lists), *self._tools()),
            layer=pip.layer(),
        )

    def _tools(self) -> tuple[File, ...]:
        lines = [lists.pinned_line(self.pins, name) for name in self.way.program]
        return tuple(
            File(path=f"{n}.txt", body=(f"{t}\n",)) for n, t in zip(self.way.program, lines, strict=True)
        )

    def _compiled(self) -> tuple[Cmd, ...]:
        """The kept wheels, each from its own folder."""
        return tuple(
            self.way.pip(
                *(WORK, "install", "--no-deps", "--no-index"),
                *("--find-links", self.maker.artifact(source).loc, source.name),
            )
            for source in self.spec.compile
        )

    def _install_user_packages(self, wheels: Loc | None) -> tuple[Cmd, ...]:
        packages = self.spec.user_packages
        if not packages:
            return ()
        places = [Join(WORK, f"/src/{house.own_of(n, p)}") for n, p in enumerate(packages)]
        commands = [Cmd.of("mkdir", "-p", Join(WORK, "/src"))]
        for package, place in zip(packages, places, strict=True):
            if wheels:
                source = house.code_of(self.spec, self.pins).loc / str(place.parts[-1]).rsplit("/", 1)[-1]
                commands.append(Cmd.of("cp", "-R", source, place))
            else:
                commands += house.copied(package, place, self.pins)
        where = lists.where(self.spec, wheels)
        commands += [
            self.way.pip(WORK, "install", "--no-deps", "--no-build-isolation", *where, place)
            for place in places
        ]
        return tuple(commands)


def _decides(pin: Pin, git: set[str], compiled: set[str]) -> bool:
    if pin.kind == "rebuild":
        return normal(pin.name) not in compiled  # those are in the keys of the wheels
    return pin.kind == "pypi" or (pin.kind == "git" and pin.name in git)


def of(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], way: Way) -> Building:
    """How the environment of a run is built."""
    return Building(spec=packages_spec.read(run, cluster, way.program), way=way, pins=pins, cluster=cluster)
