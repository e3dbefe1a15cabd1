"""The site's policy: a user's layers may tighten it and never loosen it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hpctrain.errors import Problem
from hpctrain.runfile.faults import shown_as
from hpctrain.runfile.layers.layers import Merged, Tier

_ACCOUNT = ("none", "optional", "required")

Rule = tuple[str, Callable[[Any, Any], bool]]

_RULES: dict[str, Rule] = {
    "poll_seconds": ("floor", lambda user_value, site_value: user_value >= site_value),
    "max_gpus": ("cap", lambda user_value, site_value: user_value <= site_value),
    "max_nodes": ("cap", lambda user_value, site_value: user_value <= site_value),
    "account": (
        "rule",
        lambda user_value, site_value: _ACCOUNT.index(user_value) >= _ACCOUNT.index(site_value),
    ),
    "submit_env": ("list", lambda user_value, site_value: set(user_value) <= set(site_value)),
}
"""What the site's value is called, and whether another value is at least as strict."""


def loosened(site: Merged, tiers: Iterable[Tier]) -> Iterator[Problem]:
    """A problem for each policy key that a user's layer would loosen."""
    policy = site.data.get("policy", {})
    for tier in tiers:
        user_policy = tier.data.get("policy", {})
        for key in user_policy if isinstance(user_policy, dict) else ():
            if key in _RULES and key in policy and not _allowed(key, user_policy[key], policy[key]):
                yield _problem(key, user_policy[key], tier, policy[key], site)


def _allowed(key: str, user_value: Any, site: Any) -> bool:
    try:
        return _RULES[key][1](user_value, site)
    except (TypeError, ValueError):
        return True  # a wrong type or word: strictness says so, once, with the right ones


def _problem(key: str, user_value: Any, tier: Tier, site: Any, merged: Merged) -> Problem:
    path = ("policy", key)
    owner = merged.owners.get(path)
    origin = owner.origin(path) if owner else None
    place = f"{origin.file}:{origin.at}" if origin and origin.file else "its cluster.toml"
    rule = f"the site's {_RULES[key][0]} is {_toml(site)} ({place})"
    return Problem(
        code="policy",
        message=f"policy.{key} = {_toml(user_value)}: {rule}",
        where=f"policy.{key}",
        span=tier.span(path),
    )


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return shown_as(value) or str(value)
