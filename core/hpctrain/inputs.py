"""What a session reads before it decides anything: the run file, the cluster, the plugins, the lock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import attrs
from attrs import frozen

from hpctrain import lock as locks
from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.hooks import load as loading
from hpctrain.hooks.scan import Entry, installed, names, published_clusters
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Stack
from hpctrain.plan import queues
from hpctrain.run.this_computer import is_here
from hpctrain.runfile.chosen import TECHNOLOGIES, technologies
from hpctrain.runfile.facts import Facts, installed_site_file, load_facts, site_file
from hpctrain.runfile.layers.layers import Merged, Tier, merge
from hpctrain.runfile.layers.source import RunSource, read_run
from hpctrain.runfile.load import Loaded, merged_run, structure_run
from hpctrain.selection import Plugins, admitted, imported


@frozen(kw_only=True)
class Inputs:
    """One run file on one cluster, read and judged; a session's own attributes have these names."""

    source: RunSource
    facts: Facts
    layers: Merged
    plugins: Plugins
    loaded: Loaded
    cluster: Cluster
    lock: locks.Lock


def read_inputs(
    path: str | Path | None,
    *,
    on: str | None,
    sets: Sequence[str],
    account: str | None,
    extra: Iterable[object],
    environ: Mapping[str, str],
) -> Inputs:
    """Everything, in the only order there is: the types of a run come from its plugins, which of these there
    are from its layers, and the lowest layers from the cluster."""
    source = _read_source(path, on, sets, account, environ)
    with _all_at_once(source):
        facts = _read_facts(source, environ)
    layers = merged_run(source, facts.run_tiers)
    with _all_at_once(source, facts.run_tiers):
        plugins = imported(source, facts, layers, extra, environ)
    loaded = _structured(source, facts, layers, plugins)
    cluster = queues.with_queue_hardware(facts.cluster, loaded.run.resources)
    lock = locks.read(source.path, cluster.name, loaded.run)
    return Inputs(
        source=source,
        facts=facts,
        layers=layers,
        plugins=plugins,
        loaded=loaded,
        cluster=cluster,
        lock=lock,
    )


def _read_source(
    path: str | Path | None,
    on: str | None,
    sets: Sequence[str],
    account: str | None,
    environ: Mapping[str, str],
) -> RunSource:
    """The run file, the user's settings and `sets`, for the cluster that they name or that we are on."""
    charged = (f"resources.account={account!r}",) if account else ()
    file = Path(path) if path is not None else None
    source = read_run(file, on=on, sets=(*sets, *charged), environ=environ)
    return source if source.cluster else source.on_cluster(detected())


def _read_facts(source: RunSource, environ: Mapping[str, str]) -> Facts:
    """The facts of the cluster: its plugin's, the site's, the user's."""
    name = source.cluster
    try:
        entry = loading.find("clusters", name)
    except ConfigError as error:
        raise ConfigError(*merge(source.tiers()).located(error.problems)) from None
    facts = load_facts(
        _folder(admitted(entry, source)),
        site=site_file(name, environ),
        installed=installed_site_file(name),
        settings=source.settings,
        user=source.tiers(),
    )
    if source.replay is None:
        return facts
    # What the settings said of the run is recorded; what they say today is of other runs.
    return attrs.evolve(facts, run_tiers=tuple(t for t in facts.run_tiers if t.name != "settings"))


def _folder(entry: Entry) -> Path:
    return Path(str(loading.load(entry).__file__)).parent


@contextlib.contextmanager
def _all_at_once(source: RunSource, below: Iterable[Tier] = ()) -> Iterator[None]:
    """What nobody has is told with all else that is wrong with the run file, so far as it can be told."""
    try:
        yield
    except ConfigError as error:
        below = tuple(below)
        merged = merged_run(source, below)
        problems, options = [*error.problems], {}
        stacks: dict[str, Stack] = {}
        for table, name in technologies(merged).items():
            if not name:  # none of the kind is wanted
                continue
            try:
                module = loading.load(admitted(loading.find(TECHNOLOGIES[table], name), source))
            except HpctrainError as missing:
                problems += merged.located(missing.problems)
            else:
                if hasattr(module, "Options"):
                    options[table, name] = module.Options
                if table == "train":
                    stacks = getattr(module, "STACKS", {})
        try:
            structure_run(
                source, below, merged=merged, options=options, known_names=_known_names(source), stacks=stacks
            )
        except ConfigError as others:
            # A cluster that is not known may say what seems to be missing.
            unknown = () if stacks else ("unknown-stack",)  # a trainer that is not known has any
            problems += (p for p in others.problems if p.code not in ("missing-key", *unknown))
        raise ConfigError(*dict.fromkeys(problems)) from None


def _structured(source: RunSource, facts: Facts, layers: Merged, plugins: Plugins) -> Loaded:
    """The run with the options of its plugins; ConfigError says all that is wrong with it."""
    tables = {kind: table for table, kind in TECHNOLOGIES.items()}
    options = {
        (tables[entry.kind], entry.name): module.Options
        for entry, module in plugins
        if entry.kind in tables and isinstance(module, ModuleType) and hasattr(module, "Options")
    }
    trainer = next((module for entry, module in plugins if entry.kind == "trainers"), None)
    return structure_run(
        source,
        facts.run_tiers,
        merged=layers,
        options=options,
        known_names=_known_names(source),
        stacks=getattr(trainer, "STACKS", {}),
    )


def _known_names(source: RunSource) -> dict[str, list[str]]:
    names_by_kind = {table: list(names(kind)) for table, kind in TECHNOLOGIES.items()}
    # Only `[on.X]` names a cluster that need not be installed.
    published = published_clusters() if "on" in source.document.data else ()
    names_by_kind["cluster"] = [*names("clusters"), *published]
    names_by_kind["scheduler"] = list(names("schedulers"))
    return names_by_kind


def detected(hint: str = 'cluster = "local"') -> str:
    """The cluster whose login node this is, by host name; else a ConfigError with this hint."""
    for name in names("clusters"):
        if name == "local":
            continue
        try:
            cluster = load_facts(_folder(loading.find("clusters", name))).cluster
        except Exception:  # noqa: S112  (a broken cluster must not hide the one that we are on)
            continue
        if is_here(cluster):
            return name
    listed = " ".join(sorted(e[0].name for k, e in installed().items() if k.startswith("clusters:")))
    raise ConfigError.of(
        "no-cluster",
        f"no cluster is named, and this computer belongs to none of those installed: {listed or 'none'}",
        where="cluster",
        hint=hint,
    )
