"""What resolving with pip and resolving with uv share: where to look, for how long, and for what."""

from __future__ import annotations

from pathlib import Path

from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, name_of, normal
from hpctrain_plugins.environments.wheels.stubs import Stubs

MINUTES = 30
CLEAN = {"PYTHONPATH": "", "PYTHONHOME": "", "PYTHONNOUSERSITE": "1"}
"""The user's proxies, certificates and index count while locking; the user's other packages do not."""


def later_requirements(spec: PackagesSpec, source_stubs: Stubs) -> tuple[str, ...]:
    """What is resolved after `first`: the packages, the compiled ones, and what those are built with."""
    compiled = tuple(f"{s.name}=={s.version}" for s in spec.compile if s.version)
    every = (*spec.wheels, *compiled, *source_stubs.requirements)
    return tuple(r for r in every if normal(name_of(r)) not in spec.first)


def constrained(spec: PackagesSpec, folder: Path) -> tuple[str, ...]:
    """The options by which pip and uv keep to the constraints, in a file of this folder."""
    if not spec.constraints:
        return ()
    (file := folder / "constraints.txt").write_text("".join(f"{line}\n" for line in spec.constraints))
    return ("--constraint", str(file))


def elsewhere(spec: PackagesSpec, index: str = "") -> tuple[str, ...]:
    """Where to look: one index alone, or what the options add to the tool's own configuration."""
    if index:
        return ("--index-url", index)
    index_arguments = ("--index-url", spec.options.index_url) if spec.options.index_url else ()
    return (*index_arguments, *(f"--find-links={link}" for link in spec.options.find_links))
