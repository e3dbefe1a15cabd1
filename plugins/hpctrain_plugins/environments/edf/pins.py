"""Locking for the Container Engine: the base's digest, then the packages that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.plugin import Binding, Cluster, Pin, RunSpec
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.edf import image_request
from hpctrain_plugins.environments.image import inspected, pins

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner


def resolve(
    run: RunSpec, cluster: Cluster, binding: Binding, before: tuple[Pin, ...], tools: ProgramRunner
) -> list[Pin]:
    """The pins of the base and, where it is known what the base has, of the packages."""
    from hpctrain_plugins.environments.image import registry  # what speaks to a registry takes long to import

    request = image_request.read(run, cluster, ())
    base = request.base
    if base is None:
        return []
    # Sarus Suite enters no image by its path.
    instead = "" if request.stored else "image = the path of a .sqsh that lies on the cluster"
    digest = registry.digest(base, image.oci((), cluster), f"{image_request.WHERE}.base", instead)
    base_pins = [Pin(base.text, image.KIND, digest)]
    request = image_request.read(run, cluster, tuple(base_pins))
    if not request.adds or request.base is None or request.options.containerfile:
        return base_pins
    if not request.options.has:
        base_pins += inspected.pin(request.base, request.listed, cluster, binding, before)
        request = image_request.read(run, cluster, tuple(base_pins))
    if request.has is None:
        return base_pins
    as_wheels = image_request.as_wheels(run)
    return [*base_pins, *pins.lacking(as_wheels, cluster, request.has, request.replaced, tools)]
