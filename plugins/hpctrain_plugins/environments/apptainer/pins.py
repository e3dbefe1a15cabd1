"""Locking for an image: its digest, then the packages that it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.plugin import Binding, Cluster, ConfigError, Pin, RunSpec
from hpctrain.toolbox import pinned_value
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.apptainer import image_request
from hpctrain_plugins.environments.apptainer.image_request import WHERE, ImageRequest
from hpctrain_plugins.environments.image import inspected, pins

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner


def resolve(
    run: RunSpec, cluster: Cluster, binding: Binding, before: tuple[Pin, ...], tools: ProgramRunner
) -> list[Pin]:
    """The pins of the image and, where it is known what the image has, of the packages."""
    request = image_request.read(run, cluster, ())
    digest = _digest(request) or pinned_value(before, image.KIND, request.image.text)
    image_pins = [Pin(request.image.text, image.KIND, digest)] if digest else []
    request = image_request.read(run, cluster, tuple(image_pins))
    if request.overlay is None:
        return image_pins
    if not request.options.has:
        image_pins += inspected.pin(request.image, request.listed, cluster, binding, before)
        request = image_request.read(run, cluster, tuple(image_pins))
    if request.has is None:
        return image_pins
    as_venv = image_request.as_venv(run, request.options)
    return [*image_pins, *pins.lacking(as_venv, cluster, request.has, request.replaced, tools)]


def _digest(request: ImageRequest) -> str:
    if not request.image.path:
        from hpctrain_plugins.environments.image import registry  # an image by its path asks nobody

        return registry.digest(
            request.image, request.oci, WHERE, "image = the path of a .sif that lies on the cluster"
        )
    return _file(request, Path(request.image.path))


def _file(request: ImageRequest, path: Path) -> str:
    """The id of an image that lies here; off the cluster only an earlier lock can know it."""
    from hpctrain_job import sif  # most images come from a registry

    try:
        made_for, ident = sif.arch(path), sif.ident(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError.of("image", f"{path} cannot be read: {error.strerror}", where=WHERE) from None
    if made_for and made_for != request.arch:
        raise ConfigError.of(
            "image-arch",
            f"{path} is made for {made_for}, and the training nodes are {request.arch}",
            where=WHERE,
            hint=f"apptainer pull --arch {request.oci} …      or the image's address, which hpctrain pulls",
        )
    return f"sif:{ident}" if ident else ""
