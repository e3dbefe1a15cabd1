"""What the questions of one examination are made of: the facts, and who asks from where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from attrs import frozen

from hpctrain.model.cluster import Cluster, Place

_VERSION = re.compile(r"\d+(?:\.\d+)+")


@frozen(kw_only=True)
class Site:
    """A cluster as one of its users sees it from a login node."""

    cluster: Cluster
    scheduler: ModuleType | None
    """The scheduler's plugin; None where it is not installed."""
    environ: Mapping[str, str]
    account: str = ""

    @property
    def here(self) -> Place | None:
        """The place of the login node."""
        return next((place for place in self.cluster.place if place.here), None)

    @property
    def is_like_nodes(self) -> bool:
        """Whether the login node has the architecture of the training nodes."""
        login = self.here
        return login is None or (login.arch or self.cluster.arch) == self.cluster.arch

    def prose(self, key: str) -> tuple[str, str]:
        """A free fact of the system, as text, with its source: `[facts.system] slurm = "25.05"`."""
        table: Any = self.cluster.facts.get("system", {})
        value = table.get(key) if isinstance(table, dict) else None
        if not isinstance(value, str):
            return "", ""
        source = table.get("source") or self.cluster.facts.get("source", "")
        return value, str(source)


def is_version(expected: str, text: str) -> bool | None:
    """Whether `25.11.4` is what `25.11.4, since April` or `25.11` expects; None where there is no number."""
    numbers, live_numbers = _VERSION.search(expected), _VERSION.search(text)
    if numbers is None or live_numbers is None:
        return None
    parts = numbers[0].split(".")
    return live_numbers[0].split(".")[: len(parts)] == parts
