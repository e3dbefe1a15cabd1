"""Locking for the Container Engine: the base's digest, then the packages that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.edf import wants
from hpctrain_plugins.environments.image import pins

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools


def resolve(run: RunSpec, cluster: Cluster, tools: Tools) -> list[Pin]:
    """The pins of the base and, where it is known what the base has, of the packages."""
    from hpctrain_plugins.environments.image import registry

    base = wants.read(run, cluster, ()).base
    if base is None:
        return []
    digest = registry.digest(base, image.oci((), cluster), f"{wants.WHERE}.base")
    found = [Pin(base.text, image.KIND, digest)]
    asked = wants.read(run, cluster, tuple(found))
    if not asked.adds or asked.has is None or asked.options.containerfile:
        return found
    return [*found, *pins.lacking(wants.as_wheels(run), cluster, asked.has, tools)]
