"""From RUN as a user says it to a run directory: a path, `name/n`, or a name for its newest run."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain.plan import goal
from hpctrain.render.graph import Graph
from hpctrain.run import start
from hpctrain.run.directory import RunDirectory
from hpctrain.run.registry import Registry
from hpctrain.run.status import RunState
from hpctrain.run.tools import Tools


def find(said: str | None, environ: Mapping[str, str]) -> RunDirectory:
    """The run that `said` means; without one the newest of the run file here, or else of all."""
    here = RunDirectory.at(Path(said)) if said else None
    if here is not None:
        return here
    runs = [e.run for e in Registry.of(environ).entries() if e.run.plan.is_file()]
    if not runs:
        raise ConfigError.of("no-run", "there are no runs yet", hint="hpctrain submit RUN_FILE")
    if not said:
        return _newest(runs, environ)
    name, _, number = said.partition("/")
    wanted = [r for r in runs if r.name == name and number in ("", str(r.number))]
    if not wanted:
        raise _unknown(said, runs)
    return wanted[-1]


def state_of(said: str | None, environ: Mapping[str, str]) -> tuple[RunDirectory, Graph, RunState]:
    """The run, its steps, and what its jobs and the scheduler say of them now."""
    directory = find(said, environ)
    graph = start.graph_of(directory)
    hooks = start.scheduler_hooks(graph.scheduler, environ)
    tools = Tools(environ, keep=graph.submit_env)
    return directory, graph, start.status_of(directory, graph, hooks, tools, environ)


def _newest(runs: list[RunDirectory], environ: Mapping[str, str]) -> RunDirectory:
    """The newest that the run file of this folder made; without such a file the newest of all."""
    name = _named_here(environ)
    if not name:
        return runs[-1]
    names = (name, *(f"{name}-{part}" for part in goal.NAMES))
    own = [r for r in runs if r.name in names]
    if not own:
        hint = f"{runs[-1].title}      (the newest of all)"
        raise ConfigError.of("no-run", f"no run of {name} yet", hint=hint)
    return own[-1]


def _named_here(environ: Mapping[str, str]) -> str:
    """The `name` of the run file here or above; "" without one, or while it cannot be read."""
    from hpctrain.runfile.find import find_run
    from hpctrain.runfile.text import read_toml

    try:
        name = read_toml(*find_run(None, environ, Path.cwd())).data.get("name")
    except ConfigError:
        return ""
    return name if isinstance(name, str) else ""


def _unknown(said: str, runs: list[RunDirectory]) -> ConfigError:
    titles = [r.title for r in runs]
    near = difflib.get_close_matches(said, [*titles, *{r.name for r in runs}], 1)
    return ConfigError.of("no-run", f"no run {said!r}", hint=near[0] if near else "hpctrain runs")
