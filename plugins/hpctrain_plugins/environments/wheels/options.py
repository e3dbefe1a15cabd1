"""The keys that every environment of wheels has: venv, uv and conda read the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from attrs import frozen

APART = {"apart": True}
"""Metadata of a key that decides nothing in the prefix, but a wheel, the proof, the archive or a time."""


@frozen(kw_only=True)
class Built:
    """How one package of `environment.compile` is built: `[environment.venv.builds.flash-attn]`."""

    env: Mapping[str, str] = attrs.field(factory=dict)
    """Variables of its build: { MAX_JOBS = "4" }; `${NAME}` is one of the job's, `${HPC_BUILD}` the folder
    of the Python that it is built with."""
    build: tuple[str, ...] = ()
    """What it is built with besides what its archive asks for; all of it for code by path or git."""
    against: tuple[str, ...] = ("torch",)
    """Packages of the environment that its build imports; another version of one builds anew."""
    gpu: bool = False
    """Its build asks a GPU what it is."""
    programs: tuple[str, ...] = ("cc",)
    """Programs that must be there, said before anything is built: nvcc. `cc` is $CC where that is set."""
    minutes: int = attrs.field(default=120, metadata=APART)
    """How long the build may take."""


@frozen(kw_only=True)
class Expect:
    """What must hold where training will run, besides that everything imports."""

    cuda: str = ""
    """What `torch.version.cuda` begins with: "12.6"."""
    hip: str = ""
    """What `torch.version.hip` begins with: "6.1"."""
    nccl: str = ""
    """The oldest NCCL or RCCL that may be loaded: "2.27"."""
    symbol: str = ""
    """A name that the loaded NCCL must export: "ncclCommShrink"."""
    devices: int = 0
    """How many GPUs there must be; 0: at least one, where the cluster has them."""
    command: tuple[str, ...] = ()
    """A command of your own, run inside after all else; it must end well."""


@frozen(kw_only=True)
class Options:
    """An environment that pip builds on the cluster from what `hpctrain lock` pinned."""

    python: str = ""
    """The interpreter to build with, by name or path; empty: `python<version>` on the path."""
    index_url: str = ""
    """Another package index than pip's own configuration names."""
    find_links: tuple[str, ...] = ()
    """Folders or pages with more wheels."""
    first: tuple[str, ...] = ()
    """Requirements resolved alone and before the rest: the build of torch decides what follows."""
    first_index: str = ""
    """The index of those alone ("https://download.pytorch.org/whl/cpu"). Where lock cannot reach it, exact
    versions are pinned without a hash, and the plan says so."""
    build: tuple[str, ...] = ("setuptools", "wheel")
    """What your own code and `compile` are built with; it stands in the environment."""
    system_site: bool = False
    """Also see the packages of the Python (a site module's torch)."""
    glibc: str = "2.28"
    """The C library of the target, which decides what wheels fit."""
    verify: bool = attrs.field(default=True, metadata=APART)
    """End with `pip check` and an import of what you named; on a GPU where training has one."""
    expect: Expect = attrs.field(factory=Expect, metadata=APART)
    """What else must hold there."""
    env: Mapping[str, str] = attrs.field(factory=dict, metadata=APART)
    """Variables of every build of `compile`."""
    builds: Mapping[str, Built] = attrs.field(factory=dict, metadata=APART)
    """How single packages of `compile` are built, by their names."""
    pack: Literal[False, True, "auto"] = attrs.field(default=False, metadata=APART)
    """Make one archive of the environment, which each node unpacks on its own disk (role `nodelocal`).
    "auto": where the start from the shared disk is predicted to take long, and nodes have a disk."""


def deciding(options: Options | Built) -> dict[str, Any]:
    """The keys that decide what is in the prefix, or what one build makes."""
    return attrs.asdict(options, filter=lambda field, _: not field.metadata.get("apart"))
