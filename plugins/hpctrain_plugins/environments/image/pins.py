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

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Package, RunSpec
from hpctrain.model.step import Pin
from hpctrain_plugins.environments.image.known import Has, listed
from hpctrain_plugins.environments.wheels import pins as pinning
from hpctrain_plugins.environments.wheels import stubs
from hpctrain_plugins.environments.wheels.wants import normal

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools


def lacking(run: RunSpec, cluster: Cluster, has: Has, tools: Tools) -> Iterator[Pin]:
    """What must be installed: all that `run`, read as one of wheels, resolves to but for what is there."""
    wanted = run.environment.python
    if wanted and wanted != has.python:
        raise ConfigError.of(
            "image-python",
            f"the image has Python {has.python}, not {wanted}",
            where="environment.python",
            hint="leave `python` out: an image brings its own",
        )
    there = {normal(name): version for name, version in has.packages.items()}
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as folder:
        for name, version in there.items():
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
    for one in pins:
        if one.kind != "pypi" or normal(one.name) not in there:
            yield one


def _with_note(error: ConfigError, has: Has) -> ConfigError:
    short = sorted(has.packages.items())
    said = ", ".join(f"{name} {version}" for name, version in short[:4]) + (" …" if short[4:] else "")
    note = f"the image has {said}, which is not replaced: ask for no other version"
    return ConfigError(*(attrs.evolve(p, notes=(*p.notes, note)) for p in error.problems))
