"""The environment of `venv`, installed by uv; uv is a pinned wheel like everything else.

Nothing is piped from the internet into a shell: the wheel house holds uv at the hash of the lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from hpctrain.plugin import Cluster, Layer, Pin, Plan, Problem, RunSpec, Step, hookimpl
from hpctrain_plugins.environments.wheels import options, unverified

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1


@frozen(kw_only=True)
class Options(options.Options):
    """An environment that uv builds from the wheel house; the keys are those of `[environment.venv]`."""

    own_python: bool = field(default=False, metadata=options.APART)
    """Fetch uv's own build of the Python, with the wheels, and make the environment from it: for sites that
    have none of the version. `python`, a program of the site's, comes before it."""


@hookimpl
def pin(run: RunSpec, cluster: Cluster, tools: ProgramRunner) -> list[Pin]:
    """Every package at its version, uv among them."""
    from hpctrain_plugins.environments.wheels import pins, ways

    return pins.resolve(run, cluster, tools, ways.Uv.program)


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """The wheel house first, then the prefix by its uv."""
    from hpctrain_plugins.environments.wheels import build, ways

    return build.of(run, cluster, pins, ways.Uv()).steps()


@hookimpl
def enter_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Layer:
    """The published environment in front of everything else."""
    from hpctrain_plugins.environments.wheels import build, ways

    return build.of(run, cluster, pins, ways.Uv()).layer()


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> list[Problem]:
    """What `lock` would refuse without asking anybody; pins whose hash nobody could check."""
    from hpctrain_plugins.environments.wheels import refused

    return [*refused.problems(run, cluster), *unverified.problems(plan.pins)]
