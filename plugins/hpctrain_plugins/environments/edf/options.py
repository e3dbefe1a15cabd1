"""What a run file may set under `[environment.edf]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs
from attrs import frozen

from hpctrain_plugins.environments.wheels.options import Built, Expect

HOOKS = {"com.hooks.aws_ofi_nccl.enabled": "true", "com.hooks.aws_ofi_nccl.variant": "cuda-dl"}
"""What lets the site bring its network library into an image that has none."""
SARUS_HOOKS = {"com.hooks.aws_ofi_nccl.enabled": "true", "com.hooks.cxi.enabled": "true"}
"""The same for Sarus Suite, which brings nothing unasked and has one variant."""


@frozen(kw_only=True)
class Family:
    """Images that are entered in another way than those of NVIDIA: a site's own, with its network inside."""

    names: tuple[str, ...]
    """What their names begin with: "ghcr.io/eth-cscs/alps-extended-images/"."""
    entrypoint: bool = False
    """Their entrypoint is run: it sets what they need."""
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    """What the engine's hooks read, in place of those that bring the network library."""
    env: Mapping[str, str] = attrs.field(factory=dict)
    """Variables in them."""
    starter: tuple[str, ...] = ()
    """More words for what starts the ranks: "--mpi=pmix"."""


USUAL = Family(names=(), annotations=HOOKS)
"""All other images."""


@frozen(kw_only=True)
class Options:
    """An image for CSCS's Container Engine: built from a base and your packages, or one that is there."""

    base: str = ""
    """The image yours begins with, as podman names it: "nvcr.io/nvidia/pytorch:24.04-py3"."""
    name: str = ""
    """The front of the image's file name; empty: the base's."""
    containerfile: str = attrs.field(default="", metadata={"input": True})
    """A Containerfile of your own, beside the run file; then packages are installed by it alone."""
    index_url: str = ""
    """Another package index than the image's pip is told."""
    find_links: tuple[str, ...] = ()
    """Folders or pages with more wheels."""
    builds: Mapping[str, Built] = attrs.field(factory=dict)
    """How single packages of `compile` are built, by their names."""
    image: str = ""
    """A SquashFS image that is there: entered and verified, never built."""
    engine: Literal["enroot", "sarus"] = "enroot"
    """What enters the image: enroot, by `--environment` and as a SquashFS file; sarus: Sarus Suite, by
    `--edf` and from a store of your own, which knows images by their names alone."""
    kind: Literal["image", "venv"] = "image"
    """image: base and packages are one image; venv: the base stays as it is, and the packages are a small
    file of their own, mounted at /user-software."""
    has: str = attrs.field(default="", metadata={"input": True})
    """What the base has, as its step `inspect` listed it: to lock where that list does not lie."""
    replace: tuple[str, ...] = ()
    """Packages of the base that may be replaced, by name; all others stay as they are. What `compile` builds
    and your own code replace the base's without being named."""
    expect: Expect = attrs.field(factory=Expect)
    """What must hold where training will run: verified once, before training."""
    glibc: str = "2.35"
    """The C library of the base, which decides what wheels fit."""
    apt: tuple[str, ...] = ()
    """Debian packages that the image needs as well ("python3.10-venv")."""
    build_args: tuple[str, ...] = ()
    """More options of `podman build` ("--network=host")."""
    edf: str = attrs.field(default="", metadata={"input": True})
    """A description of your own, beside the run file; the folders of the run are mounted beside its own."""
    mounts: tuple[str, ...] = ()
    """More folders, as the engine writes them: "/capstor/store/cscs/g999:/store:ro"."""
    writable: bool = True
    """The image can be written to, in memory and for the job's time; what is written is shared by a node."""
    entrypoint: bool = False
    """Run the image's entrypoint; the engine's own default is not to. Some families of images need it."""
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    """What the engine's hooks read, on top of what the image's family asks for: that the site brings its
    network library, where nothing else is said."""
    families: Mapping[str, Family] = attrs.field(factory=dict)
    """Images that are entered in another way, by a name; a cluster's facts have them."""
    variables: tuple[str, ...] = ()
    """Variables of your login that `${NAME}` in mounts may use, beside the usual ones."""
