"""Where assets of the hub lie: in the tutorial's three folders, below the role `assets`."""

from __future__ import annotations

import attrs

from hpctrain.defaults import names
from hpctrain.plugin import Asset, Cluster, Step


def placed(steps: tuple[Step, ...], name: str, asset: Asset, cluster: Cluster) -> tuple[Step, ...]:
    """The same steps; what the last one makes lies in the folder of its kind."""
    folder = _folder(name, asset, cluster)
    last = steps[-1]
    if not folder or last.makes is None:
        return steps
    return (*steps[:-1], attrs.evolve(last, makes=attrs.evolve(last.makes, folder=folder)))


def _folder(name: str, asset: Asset, cluster: Cluster) -> str:
    known = cluster.facts["cache_folders"]
    if asset.use == "arrow":
        return str(known["data"])
    if not asset.hub:
        return ""
    if names.kind(name, asset) == "dataset":
        return f"{known['data']}/{asset.hub.replace('/', '___')}"
    return str(known["tokenizer" if "tokenizer" in name else "model"])
