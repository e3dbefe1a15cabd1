"""What an image lacks: the packages of a run, resolved on top of what the image has.

What is there takes part as wheels without content: nothing else can be chosen in their place, they bring no
requirements of their own, and they are left out of what will be installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hpctrain.plugin import Cluster, ConfigError, Package, Pin, RunSpec, raise_fatal
from hpctrain_plugins.environments.image import checks
from hpctrain_plugins.environments.image.known_images import Has, listed
from hpctrain_plugins.environments.wheels import pins as pinning
from hpctrain_plugins.environments.wheels import stubs
from hpctrain_plugins.environments.wheels.packages_spec import normal

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner


def lacking(run: RunSpec, cluster: Cluster, has: Has, tools: ProgramRunner) -> Iterator[Pin]:
    """What must be installed: all that `run`, read as one of wheels, resolves to but for what is there."""
    raise_fatal(checks.lacking(run, has))
    image_packages = {normal(name): version for name, version in has.packages.items()}
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as folder:
        for name, version in image_packages.items():
            stubs.write(Path(folder), name, version, ())
        options = run.environment.options
        env = attrs.evolve(
            run.environment,
            python=has.python,
            packages=(*run.environment.packages, *(Package(requirement=line) for line in listed(has))),
            options=attrs.evolve(options, find_links=(*options.find_links, folder)),
        )
        try:
            pins = pinning.resolve(attrs.evolve(run, environment=env), cluster, tools)
        except ConfigError as error:
            raise _with_note(error, has) from None
    for pin in pins:
        if pin.kind != "pypi" or normal(pin.name) not in image_packages:
            yield pin


def _with_note(error: ConfigError, has: Has) -> ConfigError:
    short = sorted(has.packages.items())
    examples = ", ".join(f"{name} {version}" for name, version in short[:4]) + (" …" if short[4:] else "")
    note = f"the image has {examples}, which is not replaced: ask for no other version"
    return ConfigError(*(attrs.evolve(p, notes=(*p.notes, note)) for p in error.problems))
