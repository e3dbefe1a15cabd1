"""How pins are named, so that who makes one and who reads it agree."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Asset
from hpctrain.model.step import Pin

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z", re.ASCII)
_DATA = re.compile(r"data|train|eval|test|valid")
NATIVE = "native"
"""The architecture of a cluster that is whatever computer this is: fixed by a pin."""


def pinned_value(pins: Iterable[Pin], kind: str, name: str) -> str:
    """The value that was pinned for a name, or nothing."""
    return next((p.value for p in pins if p.kind == kind and p.name == name), "")


def is_commit(text: str) -> bool:
    """Whether `text` is a full commit, which never moves."""
    return bool(_COMMIT.match(text))


def git(url: str, rev: str) -> str:
    """The pin's name of a branch or tag of a repository."""
    return f"{url}@{rev or 'HEAD'}"


def hub(repo: str, kind: str, revision: str) -> str:
    """The pin's name of a revision on the hub."""
    prefix = "datasets/" if kind == "dataset" else ""
    return f"{prefix}{repo}@{revision or 'main'}"


def commit(pins: Iterable[Pin], url: str, rev: str) -> str:
    """The commit to check out: as given, as pinned, or the moving name itself where nothing is pinned."""
    return rev if is_commit(rev) else pinned_value(pins, "git", git(url, rev)) or rev or "HEAD"


def revision(pins: Iterable[Pin], repo: str, kind: str, requested: str) -> str:
    """The hub's commit: as given, as pinned, or the moving name itself where nothing is pinned."""
    return (
        requested
        if is_commit(requested)
        else pinned_value(pins, "hub", hub(repo, kind, requested)) or requested or "main"
    )


def arch(pins: Iterable[Pin], cluster: Cluster) -> str:
    """The architecture of the training nodes; `native` where this computer's is not pinned yet."""
    return cluster.arch if cluster.arch != NATIVE else pinned_value(pins, "platform", NATIVE) or NATIVE


def kind(name: str, asset: Asset) -> str:
    """model, dataset or file: as said, else guessed from what the asset is called."""
    if asset.kind:
        return asset.kind
    is_data = asset.split or asset.subset or _DATA.search(name.lower())
    return "dataset" if is_data else "model"
