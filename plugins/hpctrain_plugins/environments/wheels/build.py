"""The steps of an environment of wheels, the same for every technology.

Where one place has network and target and nothing is compiled: `env` alone. Else `wheels` and
`sources` where the network is, `compile-NAME` and `env` where the target is; then `verify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from hpctrain.defaults import names
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.layer import File, Layer
from hpctrain.model.run import RunSpec
from hpctrain.model.step import After, Artifact, Need, Pin, Step
from hpctrain.model.words import Cmd, Join, Loc, Var
from hpctrain_plugins.environments import prefix
from hpctrain_plugins.environments.wheels import house, lists, pip_env, verified, wants
from hpctrain_plugins.environments.wheels.options import deciding
from hpctrain_plugins.environments.wheels.wants import Wants, normal
from hpctrain_plugins.environments.wheels.ways import Way

if TYPE_CHECKING:
    from hpctrain_plugins.environments.wheels.compiled import Maker

WORK = Var("WORK")
BOTH = frozenset({Need.NETWORK, Need.TARGET})


@frozen(kw_only=True)
class Building:
    """One environment: what is wanted, how, from which pins, where."""

    wants: Wants
    way: Way
    pins: tuple[Pin, ...]
    cluster: Cluster

    @property
    def maker(self) -> Maker:
        """Who compiles; loaded where something is."""
        from hpctrain_plugins.environments.wheels.compiled import Maker

        return Maker(wants=self.wants, way=self.way, pins=self.pins, cluster=self.cluster)

    @property
    def arch(self) -> str:
        """The architecture of the training nodes."""
        return names.arch(self.pins, self.cluster)

    @property
    def housed(self) -> bool:
        """Whether wheels are collected first."""
        together = any(set(place.provides) >= BOTH for place in self.cluster.place)
        return self.way.housed or bool(self.wants.compile) or not together

    def steps(self) -> tuple[Step, ...]:
        """All of them, in order."""
        made = self.artifact()
        proof = (
            (verified.step(self.wants, self.cluster, made, prefix.python(made.loc)),)
            if verified.on_gpu(self.wants, self.cluster)
            else ()
        )
        if not self.housed:
            return (self._env(BOTH, None), *self._packed(), *proof)
        wheels = house.wheels(self.wants, self.way, self.pins, self.arch)
        code = house.code(self.wants, self.pins)
        fetched = (wheels, attrs.evolve(code, after=(After("wheels"),))) if code else (wheels,)
        compiled = self.maker.steps() if self.wants.compile else ()
        before = tuple(After(s.name) for s in (*fetched, *compiled))
        assert wheels.makes is not None
        env = attrs.evolve(self._env(frozenset({Need.TARGET}), wheels.makes.loc), after=before)
        return (*fetched, *compiled, env, *self._packed(), *proof)

    def artifact(self) -> Artifact:
        """The environment by what goes into it."""
        asked = self.wants
        git = {names.git(p.git, p.rev) for p in asked.own if p.git}
        compiled = {s.name for s in asked.compile}
        inputs: dict[str, Any] = {
            "python": wants.version(self.pins, asked),
            "packages": sorted(asked.wheels),
            "compile": [self.maker.artifact(s).key for s in asked.compile],
            "own": [[p.name, p.git, p.rev, p.sha256 or p.path] for p in asked.own],
            # `verify` decides nothing, and stays so that environments of earlier releases are found.
            "options": {**deciding(asked.options), "verify": True},
        }
        return Artifact(
            name=self.way.name,
            role=house.ROLE,
            inputs=inputs,
            arch=self.arch,
            pins=tuple(p for p in self.pins if _decides(p, git, compiled)),
        )

    def layer(self) -> Layer:
        """How a command gets in."""
        made = self.artifact()
        layer = prefix.layer(made.loc)
        if not self.wants.packed:
            return layer
        from hpctrain_plugins.environments.wheels import packed

        own = packed.layer(made, spread=self.wants.spread)
        return attrs.evolve(own, env=(*layer.env, *own.env))

    def _packed(self) -> tuple[Step, ...]:
        if not self.wants.packed:
            return ()
        from hpctrain_plugins.environments.wheels import packed

        packed.check(self.cluster)
        return (packed.step(self.artifact()),)

    def _env(self, needs: frozenset[Need], wheels: Loc | None) -> Step:
        found = lists.of(self.wants, self.pins)
        way = self.way
        return Step(
            name="env",
            commands=(
                *way.begin(self.wants, WORK, wheels),
                *(way.pip(WORK, "install", *words) for words in lists.install(self.wants, found, wheels)),
                *self._compiled(),
                *self._own(wheels),
                *verified.in_build(self.wants, way, WORK),
                *way.finish(WORK),
            ),
            needs=needs,
            makes=self.artifact(),
            minutes=60,
            files=(*lists.files(found), *self._tools()),
            layer=pip_env.layer(),
        )

    def _tools(self) -> tuple[File, ...]:
        lines = [lists.alone(self.pins, name) for name in self.way.program]
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
            for source in self.wants.compile
        )

    def _own(self, wheels: Loc | None) -> tuple[Cmd, ...]:
        own = self.wants.own
        if not own:
            return ()
        places = [Join(WORK, f"/src/{house.own_of(n, p)}") for n, p in enumerate(own)]
        found = [Cmd.of("mkdir", "-p", Join(WORK, "/src"))]
        for package, place in zip(own, places, strict=True):
            if wheels:
                kept = house.code_of(self.wants, self.pins).loc / str(place.parts[-1]).rsplit("/", 1)[-1]
                found.append(Cmd.of("cp", "-R", kept, place))
            else:
                found += house.copied(package, place, self.pins)
        where = lists.where(self.wants, wheels)
        found += [
            self.way.pip(WORK, "install", "--no-deps", "--no-build-isolation", *where, place)
            for place in places
        ]
        return tuple(found)


def _decides(pin: Pin, git: set[str], compiled: set[str]) -> bool:
    if pin.kind == "rebuild":
        return normal(pin.name) not in compiled  # those are in the keys of the wheels
    return pin.kind == "pypi" or (pin.kind == "git" and pin.name in git)


def of(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], way: Way) -> Building:
    """The environment of a run."""
    return Building(wants=wants.read(run, cluster, way.program), way=way, pins=pins, cluster=cluster)
