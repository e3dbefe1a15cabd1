"""Locking for an image: its digest, then the packages that it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.apptainer import wants
from hpctrain_plugins.environments.apptainer.wants import WHERE, Asked
from hpctrain_plugins.environments.image import pins

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools


def resolve(run: RunSpec, cluster: Cluster, tools: Tools) -> list[Pin]:
    """The pins of the image and, where it is known what the image has, of the packages."""
    asked = wants.read(run, cluster, ())
    digest = _digest(asked)
    found = [Pin(asked.image.text, image.KIND, digest)] if digest else []
    asked = wants.read(run, cluster, tuple(found))
    if asked.overlay is None or asked.has is None:
        return found
    as_venv = wants.as_venv(run, asked.options)
    return [*found, *pins.lacking(as_venv, cluster, asked.has, tools)]


def _digest(asked: Asked) -> str:
    if not asked.image.path:
        from hpctrain_plugins.environments.image import registry

        return registry.digest(asked.image, asked.oci, WHERE)
    return _file(asked, Path(asked.image.path))


def _file(asked: Asked, path: Path) -> str:
    """The id of an image that lies here; off the cluster nobody can know it."""
    from hpctrain_job import sif

    try:
        made_for, ident = sif.arch(path), sif.ident(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError.of("image", f"{path} cannot be read: {error.strerror}", where=WHERE) from None
    if made_for and made_for != asked.arch:
        raise ConfigError.of(
            "image-arch",
            f"{path} is made for {made_for}, and the training nodes are {asked.arch}",
            where=WHERE,
            hint=f"apptainer pull --arch {asked.oci} …      or the image's address, which hpctrain pulls",
        )
    return f"sif:{ident}" if ident else ""
