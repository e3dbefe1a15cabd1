"""The plugins of a run: those that its layers and its cluster name, in the order of their priority."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

import attrs

from hpctrain.defaults import PLUGINS
from hpctrain.errors import ConfigError
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry, names, switched_off
from hpctrain.plan.goal import Goal
from hpctrain.runfile.chosen import exports, makers, technologies
from hpctrain.runfile.facts import Facts
from hpctrain.runfile.layers.layers import Merged
from hpctrain.runfile.layers.source import RunSource
from hpctrain.versions import DISTRIBUTION

Plugins = tuple[tuple[Entry, object], ...]
"""Imported plugins with their entries, the lowest priority first."""


def imported(
    source: RunSource, facts: Facts, layers: Merged, extra: Iterable[object], environ: Mapping[str, str]
) -> Plugins:
    """Core < scheduler < trainer < environment < cluster < site: the plugins in the order of priority."""
    plugins: list[tuple[Entry, object]] = [
        (Entry("core", name.rpartition(".")[2], name, "hpctrain", DISTRIBUTION), import_module(name))
        for name in PLUGINS
    ]
    use = technologies(layers)
    chosen = [
        *(("converters", name) for name in names("converters") if exports(layers)),
        ("schedulers", facts.cluster.scheduler),
        ("trainers", use.get("train", "")),
        ("environments", use.get("environment", "")),
        *(("data", name) for name in makers(layers)),
        ("clusters", facts.cluster.name),
    ]
    for kind, name in chosen:
        if name:
            entry = _find(kind, name, facts.merged if kind == "schedulers" else layers)
            plugins.append((entry, loading.load(admitted(entry, source))))
    plugins += _site_hooks(source, layers, environ)
    plugins += [(_extra_entry(number, plugin), plugin) for number, plugin in enumerate(extra)]
    return tuple(plugins)


def admitted(entry: Entry, source: RunSource) -> Entry:
    """The entry, where `[hooks] only` is empty or names its distribution; nothing of it has run yet."""
    document = source.document
    table = document.data.get("hooks")
    only = table.get("only") if isinstance(table, dict) else None
    if not isinstance(only, list) or not only or _plain(entry.distribution) in map(_plain, map(str, only)):
        return entry
    switched_off = f"      or HPCTRAIN_DISABLE_HOOKS={entry.name}" if entry.kind == "hooks" else ""
    raise ConfigError.of(
        "plugin-not-listed",
        f"{entry.label} is not among the distributions whose plugins may take part",
        where="hooks.only",
        span=document.span(("hooks", "only")),
        hint=f"only = {json.dumps([*map(str, only), entry.distribution])}{switched_off}",
    )


def _plain(distribution: str) -> str:
    """A distribution's name as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _site_hooks(
    source: RunSource, layers: Merged, environ: Mapping[str, str]
) -> Iterator[tuple[Entry, object]]:
    """The installed site hooks, then the file that the run file names."""
    disabled = switched_off(environ)
    for name in names("hooks"):
        if name not in disabled:
            entry = loading.find("hooks", name)
            yield entry, loading.load(admitted(entry, source))
    table = layers.data.get("hooks")
    file = table.get("file") if isinstance(table, dict) else None
    # A file that does not exist is a problem of the run file, reported with all others when it is structured.
    if isinstance(file, str) and (source.base / file).is_file():
        yield loading.load_file(source.base / file, source.path)


def _find(kind: str, name: str, layers: Merged) -> Entry:
    """The plugin's entry; one that is not installed is shown where the run or the cluster names it."""
    try:
        return loading.find(kind, name)
    except ConfigError as error:
        located = []
        for problem in error.problems:
            path = tuple(problem.where.split("."))
            owner = layers.owner(path)
            located.append(attrs.evolve(problem, span=owner.span(path) if owner else None))
        raise ConfigError(*located) from None


def _extra_entry(number: int, plugin: object) -> Entry:
    name = getattr(plugin, "__name__", type(plugin).__name__)
    return Entry("hooks", str(name), f"extra[{number}]", "Session(extra=…)", str(number))


def registered(plugins: Plugins, goal: Goal | None, environ: Mapping[str, str]) -> Hooks:
    """The hooks of these plugins; what does not train asks no trainer what is wrong with the training."""
    hooks = Hooks(trace=bool(environ.get("HPCTRAIN_TRACE")), disabled=switched_off(environ))
    for entry, plugin in plugins:
        if entry.kind != "trainers" or goal is None:
            hooks.add(entry, plugin)
    return hooks
