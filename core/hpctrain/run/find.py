"""From RUN as a user says it to a run directory: a path, `name/n`, or a name for its newest run."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain.plan import goal
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
from hpctrain.run.live import LiveRun


def find(reference: str | None, environ: Mapping[str, str]) -> RunDirectory:
    """The run that `reference` means; without one the newest of the run file here, or else of all."""
    directory = RunDirectory.at(Path(reference)) if reference else None
    if directory is not None:
        return directory
    runs = [e.run for e in Registry.of(environ).entries() if e.run.exists()]
    if not runs:
        raise ConfigError.of("no-run", "there are no runs yet", hint="hpctrain submit RUN_FILE")
    if not reference:
        return _newest(runs, environ)
    name, _, number = reference.partition("/")
    matches = [r for r in runs if r.name == name and number in ("", str(r.number))]
    if not matches:
        raise _unknown(reference, runs)
    return matches[-1]


def open_run(reference: str | None = None, environ: Mapping[str, str] | None = None) -> LiveRun:
    """The run that `reference` means: a path, `name/number`, or a name for its newest run.

    Without a reference it is the newest of the run file in this folder, or else of all.
    """
    environ = dict(os.environ if environ is None else environ)
    return LiveRun.open(find(reference, environ), environ)


def _newest(runs: list[RunDirectory], environ: Mapping[str, str]) -> RunDirectory:
    """The newest that the run file of this folder made; without such a file the newest of all."""
    name = _named_here(environ)
    if not name:
        return runs[-1]
    names = (name, *(f"{name}-{part}" for part in goal.NAMES))
    matches = [r for r in runs if r.name in names]
    if not matches:
        hint = f"{runs[-1].title}      (the newest of all)"
        raise ConfigError.of("no-run", f"no run of {name} yet", hint=hint)
    return matches[-1]


def _named_here(environ: Mapping[str, str]) -> str:
    """The `name` of the run file here or above; "" without one, or while it cannot be read."""
    from hpctrain.runfile.reading.find import find_run  # a run that is named needs no run file
    from hpctrain.runfile.reading.text import read_toml

    try:
        name = read_toml(*find_run(None, environ, Path.cwd())).data.get("name")
    except ConfigError:
        return ""
    return name if isinstance(name, str) else ""


def _unknown(reference: str, runs: list[RunDirectory]) -> ConfigError:
    titles = [r.title for r in runs]
    near = difflib.get_close_matches(reference, [*titles, *{r.name for r in runs}], 1)
    return ConfigError.of("no-run", f"no run {reference!r}", hint=near[0] if near else "hpctrain runs")
