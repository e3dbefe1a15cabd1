"""Where assets of the hub lie: in the tutorial's three folders, below the role `assets`."""

from __future__ import annotations

import attrs

from hpctrain.plugin import Asset, Cluster, Step
from hpctrain.toolbox import asset_kind


def placed(steps: tuple[Step, ...], name: str, asset: Asset, cluster: Cluster) -> tuple[Step, ...]:
    """The steps of an asset, with the artifact of the last one in the folder for assets of that kind."""
    folder = _folder(name, asset, cluster)
    last = steps[-1]
    if not folder or last.makes is None:
        return steps
    return (*steps[:-1], attrs.evolve(last, makes=attrs.evolve(last.makes, folder=folder)))


def _folder(name: str, asset: Asset, cluster: Cluster) -> str:
    folders = cluster.facts["cache_folders"]
    if asset.use == "arrow":
        return str(folders["data"])
    if not asset.hub:
        return ""
    if asset_kind(name, asset) == "dataset":
        return f"{folders['data']}/{asset.hub.replace('/', '___')}"
    return str(folders["tokenizer" if "tokenizer" in name else "model"])
