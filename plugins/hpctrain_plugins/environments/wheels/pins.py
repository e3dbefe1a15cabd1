"""Resolving an environment's packages for its target: with pip here, with uv for another machine."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.errors import ConfigError, HpctrainError, NotReachable
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain_plugins.environments.wheels import stubs
from hpctrain_plugins.environments.wheels import wants as wanting
from hpctrain_plugins.environments.wheels.wants import Wants, name_of

if TYPE_CHECKING:
    from hpctrain.run.tools import Done, Tools
    from hpctrain_job.sdist import Places

OFFLINE = re.compile(
    r"Temporary failure|Connection (?:refused|reset|timed out)|dns error|unreachable|Max retries"
)
ADDRESS = re.compile(r"@|://")
WHERE = "environment.packages"
MINUTES = 30
CLEAN = {"PYTHONPATH": "", "PYTHONHOME": "", "PYTHONNOUSERSITE": "1"}
"""The user's proxies, certificates and index count while locking; the user's other packages do not."""


def resolve(run: RunSpec, cluster: Cluster, tools: Tools, program: tuple[str, ...] = ()) -> list[Pin]:
    """One pin per package; what pip would take here is what is pinned for here."""
    from hpctrain_plugins.environments.wheels import pins_far, pins_here

    wants = wanting.read(run, cluster, program)
    _refuse_others(wants)
    python = _python(wants, tools) if wants.native else ""
    found = [Pin("python", "python", _version(python, tools))] if wants.native and not wants.python else []
    if not (wants.wheels or wants.compile or wants.options.first):
        return found
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as name:
        (folder := Path(name, "stubs")).mkdir()
        made = stubs.make(wants, _places(wants), folder)
        rows: Iterable[Pin]
        if wants.native:
            rows = pins_here.resolved(wants, python, made, Path(name, "env"), tools)
        else:
            rows = pins_far.resolved(wants, cluster, made, tools)
        versions = {s.name: s.version for s in wants.compile}
        return [*found, *(p for p in rows if p.name not in made.archives), *made.pins(versions)]


def rest(wants: Wants, made: stubs.Stubs) -> tuple[str, ...]:
    """What is resolved after `first`: the packages, the compiled ones, and what those are built with."""
    compiled = tuple(f"{s.name}=={s.version}" for s in wants.compile if s.version)
    every = (*wants.wheels, *compiled, *made.requirements)
    return tuple(r for r in every if wanting.normal(name_of(r)) not in wants.first)


def elsewhere(wants: Wants, index: str = "") -> tuple[str, ...]:
    """Where to look: one index alone, or what the options add to the tool's own configuration."""
    if index:
        return ("--index-url", index)
    own = ("--index-url", wants.options.index_url) if wants.options.index_url else ()
    return (*own, *(f"--find-links={link}" for link in wants.options.find_links))


def unsolved(wants: Wants, done: Done) -> HpctrainError:
    """Why nothing was resolved, in the tool's own last words."""
    said = [line.strip() for line in done.err.splitlines() if line.strip() and "WARNING" not in line]
    notes = tuple(said[-6:])
    if OFFLINE.search(done.err):
        return NotReachable.of("no-index", "the package index cannot be reached from here", notes=notes)
    python = f" for Python {wants.python}" if wants.python else ""
    return ConfigError.of(
        "no-solution", f"the packages do not fit together{python}", where=WHERE, notes=notes
    )


def _places(wants: Wants) -> Places:
    """Where source archives are looked for: as the options say, else as pip is told on this computer."""
    from hpctrain_job import sdist

    if not any(s.version for s in wants.compile):
        return sdist.Places()
    own = sdist.configured(os.environ)
    indexes = (wants.options.index_url,) if wants.options.index_url else own.indexes
    return sdist.Places(indexes, (*wants.options.find_links, *own.links))


def _python(wants: Wants, tools: Tools) -> str:
    """The interpreter on this computer that the environment will be made from."""
    wanted = wants.options.python or (f"python{wants.python}" if wants.python else sys.executable)
    if tools.which(wanted) is None:
        raise ConfigError.of(
            "no-python",
            f"there is no {wanted} on this computer",
            where="environment.python",
            hint=f'[environment]\npython = "{sys.version_info[0]}.{sys.version_info[1]}"',
        )
    return wanted


def _version(python: str, tools: Tools) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return str(tools.run((python, "-c", code)).out).strip()


def _refuse_others(wants: Wants) -> None:
    """A list of requirements is a list of names: options and addresses have keys of their own."""
    for line in (*wants.packages, *(s.package.requirement for s in wants.compile)):
        if line.startswith("-"):
            raise ConfigError.of(
                "requirements-option",
                f"{line.split()[0]} is an option of pip, not a requirement",
                where="environment.requirements",
                hint='[environment.venv]\nindex_url = "https://…"      or find_links, first_index',
            )
        if ADDRESS.search(line):
            raise ConfigError.of(
                "requirement-address",
                f"{name_of(line)} is asked for by its address",
                where=WHERE,
                hint=f'packages = [{{ name = "{name_of(line)}", git = "https://…", rev = "…" }}]',
            )
