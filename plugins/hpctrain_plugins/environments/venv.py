"""A virtual environment from pinned wheels, built where network and target meet, or in two places.

`<link>/bin/python` finds its environment through the published link; the scripts' first lines name
the path where it was built, which never moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.errors import Problem
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import Layer
from hpctrain.model.plan import Plan
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin, Step
from hpctrain_plugins.environments.wheels import unverified
from hpctrain_plugins.environments.wheels.options import Options as Options

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools

HPCTRAIN_API = 1


@hookimpl
def pin(run: RunSpec, cluster: Cluster, tools: Tools) -> list[Pin]:
    """Every package of the environment at its version, resolved for the target."""
    from hpctrain_plugins.environments.wheels import pins

    return pins.resolve(run, cluster, tools)


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """One step where a place has network and target, else wheels first."""
    from hpctrain_plugins.environments.wheels import build, ways

    return build.of(run, cluster, pins, ways.Way()).steps()


@hookimpl
def enter_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Layer:
    """The published environment in front of everything else."""
    from hpctrain_plugins.environments.wheels import build, ways

    return build.of(run, cluster, pins, ways.Way()).layer()


@hookimpl
def check_run(plan: Plan) -> list[Problem]:
    """Pins whose hash nobody could check are said in every plan."""
    return unverified.problems(plan.pins)
