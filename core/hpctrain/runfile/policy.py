"""The site's policy: a user's layers may tighten it and never loosen it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hpctrain.errors import Problem
from hpctrain.runfile.faults import shown_as
from hpctrain.runfile.layers import Merged, Tier

_ACCOUNT = ("none", "optional", "required")

Rule = tuple[str, Callable[[Any, Any], bool]]

_RULES: dict[str, Rule] = {
    "poll_seconds": ("floor", lambda mine, site: mine >= site),
    "max_gpus": ("cap", lambda mine, site: mine <= site),
    "max_nodes": ("cap", lambda mine, site: mine <= site),
    "account": ("rule", lambda mine, site: _ACCOUNT.index(mine) >= _ACCOUNT.index(site)),
    "submit_env": ("list", lambda mine, site: set(mine) <= set(site)),
}
"""What the site's value is called, and whether another value is at least as strict."""


def loosened(site: Merged, tiers: Iterable[Tier]) -> Iterator[Problem]:
    """A problem for each policy key that a user's layer would loosen."""
    policy = site.data.get("policy", {})
    for tier in tiers:
        mine = tier.data.get("policy", {})
        for key in mine if isinstance(mine, dict) else ():
            if key in _RULES and key in policy and not _allowed(key, mine[key], policy[key]):
                yield _problem(key, mine[key], tier, policy[key], site)


def _allowed(key: str, mine: Any, site: Any) -> bool:
    try:
        return _RULES[key][1](mine, site)
    except (TypeError, ValueError):
        return True  # a wrong type or word: strictness says so, once, with the right ones


def _problem(key: str, mine: Any, tier: Tier, site: Any, merged: Merged) -> Problem:
    path = ("policy", key)
    owner = merged.owners.get(path)
    origin = owner.origin(path) if owner else None
    place = f"{origin.file}:{origin.at}" if origin and origin.file else "its cluster.toml"
    rule = f"the site's {_RULES[key][0]} is {_toml(site)} ({place})"
    return Problem(
        code="policy",
        message=f"policy.{key} = {_toml(mine)}: {rule}",
        where=f"policy.{key}",
        span=tier.span(path),
    )


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return shown_as(value) or str(value)
