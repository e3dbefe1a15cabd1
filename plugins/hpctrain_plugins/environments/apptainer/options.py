"""What a run file may set under `[environment.apptainer]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs
from attrs import frozen

from hpctrain_plugins.environments.wheels.options import Built, Expect


@frozen(kw_only=True)
class Options:
    """A base image with an overlay of Python packages, entered with Apptainer."""

    image: str = ""
    """The base image: in a registry, by tag (`lock` pins its digest), or a .sif by its path."""
    has: str = attrs.field(default="", metadata={"input": True})
    """What the image has, as its step `inspect` listed it: to lock where that list does not lie."""
    replace: tuple[str, ...] = ()
    """Packages of the image that may be replaced, by name; all others stay as they are. What `compile` builds
    and your own code replace the image's without being named."""
    name: str = "myenv"
    """The front of the overlay's file name: `myenv_<12 hex>_arm64.sqsh`."""
    overlay: Literal["squashfs", "ext3"] = "squashfs"
    """squashfs: compressed, read only; ext3: what NRIS documents, made by `apptainer overlay create`."""
    size_mb: int = attrs.field(default=5120, validator=attrs.validators.ge(64))
    """Of an ext3 overlay, which cannot grow; Apptainer makes none below 64."""
    index_url: str = ""
    """Another package index than pip's own configuration names."""
    find_links: tuple[str, ...] = ()
    """Folders or pages with more wheels."""
    builds: Mapping[str, Built] = attrs.field(factory=dict)
    """How single packages of `compile` are built, by their names."""
    expect: Expect = attrs.field(factory=Expect)
    """What must hold where training will run: verified once, before training."""
    glibc: str = "2.35"
    """The C library of the image, which decides what wheels fit."""
