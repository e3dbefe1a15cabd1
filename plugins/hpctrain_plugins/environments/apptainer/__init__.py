"""Apptainer: a base image as it is, and what it lacks in one file that is mounted at /user-software.

A venv does not survive a move, so it is made at the path where it is used: the build binds a folder
there. Thousands of small files become one, which a parallel file system serves as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import attrs

from hpctrain.errors import Problem
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.job import Rule
from hpctrain.model.layer import Bind, Layer
from hpctrain.model.plan import Plan
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin, Step
from hpctrain_plugins.environments.wheels.options import Built

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools

HPCTRAIN_API = 1


@frozen(kw_only=True)
class Options:
    """A base image with an overlay of Python packages, entered with Apptainer."""

    image: str = ""
    """The base image: in a registry, by tag (`lock` pins its digest), or a .sif by its path."""
    has: str = attrs.field(default="", metadata={"input": True})
    """What the image has, as its step `inspect` listed it: for an image that hpctrain does not know."""
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
    glibc: str = "2.35"
    """The C library of the image, which decides what wheels fit."""


@hookimpl
def pin(run: RunSpec, cluster: Cluster, tools: Tools) -> list[Pin]:
    """The image's digest, and every package at its version on top of what the image has."""
    from hpctrain_plugins.environments.apptainer import pins

    return pins.resolve(run, cluster, tools)


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """The image, a list of what it has where nobody knows it, and the overlay."""
    from hpctrain_plugins.environments.apptainer import build

    return build.steps(run, cluster, pins)


@hookimpl
def enter_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """The image around, the overlay at its path, every role that the run uses visible."""
    from hpctrain_plugins.environments.apptainer import enter

    return enter.layer(run, cluster, pins, binds)


@hookimpl
def surround(run: RunSpec, cluster: Cluster, step: Step) -> Layer | None:
    """What training alone needs: the fabric's libraries, and the token's older name."""
    from hpctrain_plugins.environments.apptainer import enter

    return enter.training(run, cluster, step) if step.trains else None


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> list[Problem]:
    """An image that nobody knows; a target that is the home directory."""
    from hpctrain_plugins.environments.apptainer import wants
    from hpctrain_plugins.environments.image import checks

    stands_on = wants.read(run, cluster, plan.pins).image.text
    return [*checks.home(cluster, plan), *checks.unknown(plan, stands_on, wants.WHERE)]


@hookimpl
def diagnose_rules() -> tuple[Rule, ...]:
    """What goes wrong with images and overlays."""
    from hpctrain_plugins.environments.apptainer import rules

    return rules.RULES
