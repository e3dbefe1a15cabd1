"""A virtual environment from pinned wheels, built where network and target meet, or in two places.

`<link>/bin/python` finds its environment through the published link; the scripts' first lines name
the path where it was built, which never moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.plugin import Cluster, Layer, Pin, Plan, Problem, RunSpec, Step, hookimpl
from hpctrain_plugins.environments.wheels import unverified
from hpctrain_plugins.environments.wheels.options import Options as Options

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1


@hookimpl
def pin(run: RunSpec, cluster: Cluster, tools: ProgramRunner) -> list[Pin]:
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
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> list[Problem]:
    """What `lock` would refuse without asking anybody; pins whose hash nobody could check."""
    from hpctrain_plugins.environments.wheels import refused

    return [*refused.problems(run, cluster), *unverified.problems(plan.pins)]
