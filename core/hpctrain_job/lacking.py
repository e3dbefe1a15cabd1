"""A Python package that is not installed: one sentence about it and one cure, in commands and in jobs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache

NO_PACKAGE = "no-package"
DISTRIBUTION = "hpctrain"
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;.*extra\s*==\s*[\"']([^\"']+))?")


def message(user: str, package: str) -> str:
    """What is wrong: `user` is a command, a plugin or a file that cannot do without the package."""
    return f"{user} needs the package {package}, which is not installed here"


def cure(package: str, distribution: str = DISTRIBUTION) -> str:
    """What to type or to paste, so that the package is there.

    A step of a run has the environment that the run file describes; anywhere else an extra brings it.
    """
    if os.environ.get("HPC_STEP"):
        return f'packages = ["{package}"]      (in [environment] of the run file)'
    extra = extra_of(package, distribution)
    return f"pip install '{distribution}[{extra}]'" if extra else f"pip install {package}"


def extra_of(package: str, distribution: str = DISTRIBUTION) -> str:
    """The extra of an installed distribution that brings the package and least besides; "" without one."""
    extras = dict.fromkeys(extra for _, _, extra in _requirements(distribution) if extra)
    brought = {extra: set(_brought(distribution, extra)) for extra in extras}
    fitting = [extra for extra in extras if _normal(package) in brought[extra]]
    return min(fitting, key=lambda extra: len(brought[extra]), default="")


def _brought(distribution: str, extra: str, above: tuple[tuple[str, str], ...] = ()) -> Iterator[str]:
    """The packages that an extra asks for, and those of the extras that it names in turn."""
    if (distribution, extra) in above:
        return
    for name, inner, condition in _requirements(distribution):
        if condition == extra:
            yield name
            for deeper in inner:
                yield from _brought(name, _normal(deeper), (*above, (distribution, extra)))


@cache
def _requirements(distribution: str) -> list[tuple[str, list[str], str]]:
    """Name, extras of it, and the extra of this distribution under whose name it stands, of each line."""
    from importlib import metadata  # 34 ms, for those who lack something

    try:
        lines = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    matches = filter(None, map(_REQUIREMENT.match, lines))
    return [
        (
            _normal(match[1]),
            [word.strip() for word in (match[2] or "").split(",") if word.strip()],
            _normal(match[3] or ""),
        )
        for match in matches
    ]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
