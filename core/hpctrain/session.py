"""One run with its own plugins: the front door of the library, and of the command line.

    from hpctrain import Session

    run = Session("run.toml", on="frontier")
    print(run.plan().digest)
    run.submit()

It prints nothing and raises the same problems as the command line shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import attrs

from hpctrain.defaults import PLUGINS
from hpctrain.errors import ConfigError, Problem
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry, installed, names
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Binding, Plan, Survey
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain.plan import planner
from hpctrain.plan.goal import Goal
from hpctrain.runfile.chosen import exports, makers, technologies
from hpctrain.runfile.facts import Facts, load_facts, site_file
from hpctrain.runfile.layers import Merged, merge
from hpctrain.runfile.load import Loaded, merged_run, structure_run
from hpctrain.runfile.raw import Raw, read_run
from hpctrain.versions import DISTRIBUTION

if TYPE_CHECKING:
    from hpctrain.lock import Lock
    from hpctrain.run.directory import RunDirectory

TECHNOLOGIES = {"environment": "environments", "train": "trainers"}


class Session:
    """A run file on one cluster with the plugins it needs, and no others.

    `extra` are objects with hooks of your own: they have the last word, like installed site hooks.
    `goal` is the part of the run that is wanted; without one it is all of it. `here` says whether this
    is the cluster where its name does not tell: on a compute node.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        on: str | None = None,
        sets: Sequence[str] = (),
        account: str | None = None,
        extra: Iterable[object] = (),
        environ: Mapping[str, str] | None = None,
        raw: Raw | None = None,
        goal: Goal | None = None,
        here: bool | None = None,
    ) -> None:
        self.goal, self.here = goal, here
        self.environ = dict(os.environ if environ is None else environ)
        given = Path(path) if path is not None else None
        charged = (f"resources.account={account!r}",) if account else ()
        self.raw = raw or read_run(given, on=on, sets=(*sets, *charged), environ=self.environ)
        if not self.raw.cluster:
            self.raw = self.raw.on_cluster(detected())
        self._modules: dict[str, ModuleType] = {}
        self.facts = self._read_facts()
        self._extra = tuple(extra)
        self.hooks = self._register()

    @property
    def cluster(self) -> Cluster:
        return self.facts.cluster

    @property
    def run(self) -> RunSpec:
        return self.loaded.run

    @cached_property
    def loaded(self) -> Loaded:
        """The structured run; ConfigError says all that is wrong with it."""
        used = dict(self._used())
        options = {
            (table, name): module.Options
            for (kind, name), module in used.items()
            for table, plural in TECHNOLOGIES.items()
            if plural == kind and hasattr(module, "Options")
        }
        trainer = next((module for (kind, _), module in used.items() if kind == "trainers"), None)
        stacks = getattr(trainer, "STACKS", {})
        known = {table: names(plural) for table, plural in TECHNOLOGIES.items()}
        known["cluster"] = [*names("clusters"), *loading.EXTRAS]
        known["scheduler"] = names("schedulers")
        return structure_run(self.raw, self.facts.run_tiers, options=options, known=known, stacks=stacks)

    @property
    def lock(self) -> Lock:
        """The pins of this cluster, and whether they still answer what the run asks."""
        from hpctrain.lock import read

        return read(self.raw.path, self.cluster.name, self.run)

    @cached_property
    def pins(self) -> tuple[Pin, ...]:
        """What `hpctrain lock` wrote for this cluster; () when nothing was locked, or not for this."""
        lock = self.lock
        return () if lock.stale else lock.pins

    def plan(self) -> Plan:
        """What would happen. Pure: the same on every machine."""
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        plan = planner.make(
            self.run,
            self.cluster,
            self.pins,
            self.hooks.call,
            origins=self.loaded.origins,
            plugins=tuple(self.hooks.plugins),
            goal=self.goal,
        )
        said = plan.problems if self.goal is None else tuple(map(self.goal.said, plan.problems))
        return attrs.evolve(plan, problems=(*self.loaded.problems, *self.located(said)))

    def located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """The problems, those of a key of the run file with their place in it."""
        return self._merged.located(problems)

    @cached_property
    def binding(self) -> Binding:
        """Where the storage roles lie for this user, and the run file's own folder."""
        from hpctrain.run.bind import bind

        found = bind(self.cluster, self.run, self.environ, here=self.here)
        return attrs.evolve(found, roots={**found.roots, "runfile": str(self.raw.base)})

    def survey(self) -> Survey:
        """What this machine says now."""
        from hpctrain.run.survey import survey

        return survey(self.plan(), self.binding, here=self.here)

    def files(self) -> dict[str, str | bytes]:
        """Every file of the run's directory, as `submit` and `eject` write them."""
        from hpctrain.run.start import contents

        return contents(self)

    def submit(self, *, locked: bool = False) -> RunDirectory:
        """Lock what is not locked, build what is missing, submit the jobs; the run's directory."""
        from hpctrain.run import start

        tools = start.tools_for(self)
        if not self.locked and not locked:
            start.judge(self, tools)
            start.lock(self, tools)
        start.judge(self, tools)
        run, _ = start.submit(self, tools, lambda *_: None)
        return run

    @property
    def locked(self) -> bool:
        """Whether every name is pinned as the run asks now."""
        lock = self.lock
        return lock.found and not lock.stale

    def forget(self) -> None:
        """Drop what was computed from the pins, after they changed."""
        for name in ("pins", "_plan"):
            self.__dict__.pop(name, None)

    def _read_facts(self) -> Facts:
        name = self.raw.cluster
        try:
            entry = loading.find("clusters", name)
        except ConfigError as error:
            raise ConfigError(*merge(self.raw.tiers()).located(error.problems)) from None
        module = self._module(entry)
        folder = Path(str(module.__file__)).parent
        return load_facts(
            folder,
            site=site_file(name, self.environ),
            settings=self.raw.settings,
            user=self.raw.tiers(),
        )

    def _register(self) -> Hooks:
        """Core < scheduler < trainer < environment < cluster < site: the order of priority."""
        off = self.environ.get("HPCTRAIN_DISABLE_HOOKS", "").replace(",", " ").split()
        hooks = Hooks(trace=bool(self.environ.get("HPCTRAIN_TRACE")), disabled=off)
        for name in PLUGINS:
            hooks.add(
                Entry("core", name.rpartition(".")[2], name, "hpctrain", DISTRIBUTION), import_module(name)
            )
        for (kind, name), module in self._used():
            if kind == "trainers" and self.goal is not None:
                continue  # what does not train asks no trainer what is wrong with the training
            hooks.add(loading.find(kind, name), module)
        for name in names("hooks"):
            if name not in off:
                entry = loading.find("hooks", name)
                hooks.add(entry, self._module(entry))
        table = self._merged.data.get("hooks")
        file = table.get("file") if isinstance(table, dict) else None
        # A file that is not there is a problem of the run file, told with all others when it is loaded.
        if isinstance(file, str) and (self.raw.base / file).is_file():
            hooks.add(*loading.load_file(self.raw.base / file))
        for number, plugin in enumerate(self._extra):
            hooks.add(_extra_entry(number, plugin), plugin)
        return hooks

    def _used(self) -> Iterator[tuple[tuple[str, str], ModuleType]]:
        """The chosen plugins in order of priority, imported."""
        use = technologies(self._merged)
        chosen = [
            *(("converters", name) for name in names("converters") if exports(self._merged)),
            ("schedulers", self.cluster.scheduler),
            ("trainers", use.get("train", "")),
            ("environments", use.get("environment", "")),
            *(("data", name) for name in makers(self._merged)),
            ("clusters", self.cluster.name),
        ]
        for kind, name in chosen:
            if name:
                yield (kind, name), self._module(self._chosen(kind, name))

    def _chosen(self, kind: str, name: str) -> Entry:
        """The plugin's entry; one that is not installed is shown where the run or the cluster names it."""
        merged = self.facts.merged if kind == "schedulers" else self._merged
        try:
            return loading.find(kind, name)
        except ConfigError as error:
            shown = []
            for problem in error.problems:
                path = tuple(problem.where.split("."))
                owner = merged.owner(path)
                shown.append(attrs.evolve(problem, span=owner.span(path) if owner else None))
            raise ConfigError(*shown) from None

    @cached_property
    def _merged(self) -> Merged:
        return merged_run(self.raw, self.facts.run_tiers)

    def _module(self, entry: Entry) -> ModuleType:
        if entry.id not in self._modules:
            self._modules[entry.id] = loading.load(entry)
        return self._modules[entry.id]


def detected() -> str:
    """The cluster whose login node this is, by host name; ConfigError when none says so."""
    from hpctrain.run.here import is_here

    for name in names("clusters"):
        if name == "local":
            continue
        try:
            module = loading.load(loading.find("clusters", name))
            cluster = load_facts(Path(str(module.__file__)).parent).cluster
        except Exception:  # noqa: S112  (a broken cluster must not hide the one that we are on)
            continue
        if is_here(cluster):
            return name
    listed = " ".join(sorted(e[0].name for k, e in installed().items() if k.startswith("clusters:")))
    raise ConfigError.of(
        "no-cluster",
        f"no cluster is named, and this computer is none of those installed: {listed or 'none'}",
        where="cluster",
        hint='cluster = "local"',
    )


def _extra_entry(number: int, plugin: object) -> Entry:
    name = getattr(plugin, "__name__", type(plugin).__name__)
    return Entry("hooks", str(name), f"extra[{number}]", "Session(extra=…)", str(number))
