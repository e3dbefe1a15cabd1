"""What an image lacks: the packages of a run, resolved on top of what the image has.

What is there takes part as wheels without content: nothing else can be chosen in their place, they bring no
requirements of their own, and they are left out of what will be installed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hpctrain.plugin import Cluster, ConfigError, Pin, Problem, RunSpec, raise_fatal
from hpctrain_job.listing import Listing
from hpctrain_plugins.environments.image import checks
from hpctrain_plugins.environments.wheels import pins as pinning
from hpctrain_plugins.environments.wheels import stubs
from hpctrain_plugins.environments.wheels.packages_spec import normal

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

LIMIT = 4


def lacking(
    run: RunSpec, cluster: Cluster, has: Listing, replaced: Iterable[str], tools: ProgramRunner
) -> Iterator[Pin]:
    """What must be installed: all that `run`, read as one of wheels, resolves to but for what is there."""
    raise_fatal(checks.lacking(run, has))
    image_packages = has.packages_kept(replaced)
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as folder:
        marked = {name: _marked(version) for name, version in image_packages.items()}
        for name, version in marked.items():
            stubs.write(Path(folder), name, version, ())
        options = run.environment.options
        env = attrs.evolve(
            run.environment,
            python=has.python,
            options=attrs.evolve(options, find_links=(*options.find_links, folder)),
        )
        constraints = (*(f"{n}=={v}" for n, v in marked.items()), *has.constraints_kept(replaced))
        try:
            pins = pinning.resolve(
                attrs.evolve(run, environment=env), cluster, tools, constraints=constraints
            )
        except ConfigError as error:
            raise _with_note(error, run.environment.use, image_packages) from None
    for pin in pins:
        if pin.kind != "pypi" or normal(pin.name) not in image_packages:
            yield pin


def _marked(version: str) -> str:
    """A version that no index has: an index may have the same one, with requirements that the image does
    not keep."""
    return version if "+" in version else f"{version}+image"


def _with_note(error: ConfigError, technology: str, image_packages: dict[str, str]) -> ConfigError:
    return ConfigError(*(_noted(problem, technology, image_packages) for problem in error.problems))


def _noted(problem: Problem, technology: str, image_packages: dict[str, str]) -> Problem:
    """With what the image has of the packages that are spoken of, and how one of them is replaced."""
    words = set(map(normal, re.findall(r"[A-Za-z0-9][\w.-]*", " ".join((problem.message, *problem.notes)))))
    mentioned = sorted(words & set(image_packages))
    names_shown = mentioned or sorted(image_packages)
    examples = ", ".join(f"{name} {image_packages[name]}" for name in names_shown[:LIMIT]) + (
        " …" if names_shown[LIMIT:] else ""
    )
    note = f"the image has {examples}, which is not replaced: ask for no other version, or say so"
    names = ", ".join(f'"{name}"' for name in mentioned)
    hint = f"[environment.{technology}]\nreplace = [{names}]" if mentioned else problem.hint
    return attrs.evolve(problem, notes=(*problem.notes, note), hint=hint)
