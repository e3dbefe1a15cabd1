"""Tables that need one key out of several: said once, for rules, layers and the schema."""

from __future__ import annotations

from collections.abc import Mapping

from hpctrain.model.run import Asset, Code, Package, Resources
from hpctrain.runfile.keys import Keys

ONE_OF: Mapping[type, tuple[str, ...]] = {
    Asset: ("hub", "url", "git", "path", "command", "use"),
    Code: ("git", "path"),
    Package: ("requirement", "path", "git"),
}
"""Exactly one of these keys."""

AT_MOST_ONE: Mapping[type, tuple[str, ...]] = {Resources: ("nodes", "gpus")}

_TABLES: Mapping[Keys, type] = {("resources",): Resources, ("assets", "*"): Asset, ("code",): Code}


def alternatives_at(path: Keys) -> frozenset[str]:
    """The keys of this table that exclude each other: a higher layer's replaces a lower one's."""
    cls = _TABLES.get(path) or _TABLES.get((*path[:-1], "*"))
    return frozenset() if cls is None else frozenset(ONE_OF.get(cls) or AT_MOST_ONE[cls])
