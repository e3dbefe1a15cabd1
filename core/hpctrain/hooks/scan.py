"""The one scan of installed distributions for hpctrain's entry points; nothing is imported.

importlib.metadata takes 32 ms of CPU time to import and ask, with the 17 distributions of
`hpctrain[all]`, and parses every file it opens; this scan takes 3 ms. One folder listing finds
the candidates, and only files that name one of our groups are parsed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

KINDS = (
    *("clusters", "schedulers", "environments", "trainers"),
    *("checkpoints", "converters", "data", "hooks", "commands"),
)
PREFIX = "hpctrain."
ISOLATED = "HPCTRAIN_ISOLATED"
"""The variable that `--isolated` sets."""


class Entry:
    """One entry point: what users write (`name`), where it is, and which distribution brings it."""

    __slots__ = ("distribution", "kind", "module", "name", "version")

    def __init__(self, kind: str, name: str, module: str, distribution: str, version: str) -> None:
        self.kind = kind
        self.name = name
        self.module = module
        self.distribution = distribution
        self.version = version

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def label(self) -> str:
        """`frontier (hpctrain-frontier 0.1.0)`, as every error about a plugin begins."""
        return f"{self.name} ({self.distribution} {self.version})"

    def __repr__(self) -> str:
        return f"Entry({self.id} from {self.distribution} {self.version})"


@cache
def installed(paths: tuple[str, ...] | None = None) -> Mapping[str, tuple[Entry, ...]]:
    """Every entry by `kind:name`; more than one entry under a name is a conflict for the loader."""
    entries_by_id: dict[str, list[Entry]] = {}
    distributions: set[str] = set()
    for path in paths if paths is not None else tuple(sys.path):
        for folder, distribution, version in _distributions(path):
            # The first on the path shadows later ones, as an overlay does its base image.
            if distribution in distributions:
                continue
            distributions.add(distribution)
            for entry in _entries(folder, distribution, version):
                entries_by_id.setdefault(entry.id, []).append(entry)
    return {key: tuple(entries) for key, entries in entries_by_id.items()}


def names(kind: str, entries: Mapping[str, tuple[Entry, ...]] | None = None) -> list[str]:
    """The installed names of one kind, sorted."""
    source = installed() if entries is None else entries
    return sorted(group[0].name for group in source.values() if group[0].kind == kind)


def switched_off(environ: Mapping[str, str]) -> list[str]:
    """The site hooks that the user leaves out: those named, and all of them in an isolated program."""
    named = environ.get("HPCTRAIN_DISABLE_HOOKS", "").replace(",", " ").split()
    return [*named, *names("hooks")] if environ.get(ISOLATED) else named


@cache
def published_clusters() -> tuple[str, ...]:
    """The clusters that an extra of hpctrain brings: those extras that are part of the extra `clusters`."""
    for path in sys.path:
        for folder, distribution, _ in _distributions(path):
            if distribution == "hpctrain":
                return _parts_of_clusters(_read(f"{folder}/METADATA"))
    return ()


def _parts_of_clusters(metadata: str) -> tuple[str, ...]:
    requirements: dict[str, set[str]] = {}
    for line in metadata.splitlines():
        requirement, _, marker = line.partition("; extra == ")
        if marker and line.startswith("Requires-Dist:"):
            requirements.setdefault(marker.strip("'\""), set()).add(requirement)
    clusters = requirements.pop("clusters", set())
    return tuple(sorted(extra for extra, parts in requirements.items() if parts <= clusters))


def _distributions(path: str) -> Iterator[tuple[str, str, str]]:
    try:
        listing = sorted(os.listdir(path or "."))  # noqa: PTH208  (pathlib costs more than the scan)
    except OSError:
        return
    for item in listing:
        # pip puts ~ in front of what it replaces, and leaves that there when it is killed
        if item.endswith((".dist-info", ".egg-info")) and not item.startswith("~"):
            name, _, version = item.rpartition(".")[0].partition("-")
            yield f"{path}/{item}", name.replace("_", "-").lower(), version or "?"


def _entries(folder: str, distribution: str, version: str) -> list[Entry]:
    text = _read(f"{folder}/entry_points.txt")
    return _parse(text, distribution, version) if PREFIX in text else []


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _parse(text: str, distribution: str, version: str) -> list[Entry]:
    entries, kind = [], ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            group = line.strip("[]")
            kind = group[len(PREFIX) :] if group.startswith(PREFIX) else ""
        elif kind in KINDS and "=" in line and not line.startswith(("#", ";")):
            name, _, target = (part.strip() for part in line.partition("="))
            entries.append(Entry(kind, name, target, distribution, version))
    return entries


def duplicates(entries: Iterable[Entry]) -> str:
    """`a 1.0, b 2.0`: the distributions that fight over a name."""
    return ", ".join(sorted(f"{e.distribution} {e.version}" for e in entries))
