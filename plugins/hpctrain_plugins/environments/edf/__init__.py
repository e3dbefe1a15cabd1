"""CSCS's Container Engine: an image built with podman, made SquashFS, entered by its description (EDF).

The engine mounts the image before any program of the step starts, so there is no command in front of
the ranks: the scheduler's own starter is told which description to use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpctrain.plugin import Bind, Binding, Cluster, Layer, Pin, Plan, Problem, Rule, RunSpec, Step, hookimpl
from hpctrain_plugins.environments.edf.options import Options as Options

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1


@hookimpl
def pin(
    run: RunSpec, cluster: Cluster, binding: Binding, pins: tuple[Pin, ...], tools: ProgramRunner
) -> list[Pin]:
    """The base's digest for the training nodes, what it has, and every package on top at its version."""
    from hpctrain_plugins.environments.edf import pins as pinning

    return pinning.resolve(run, cluster, binding, pins, tools)


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """Build, import and stripe in one job, since podman's images are gone when it ends; then verify."""
    from hpctrain_plugins.environments.edf import build

    return build.steps(run, cluster, pins)


@hookimpl
def enter_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], binds: tuple[Bind, ...]) -> Layer:
    """The description beside the step's scripts, and the word that makes the starter use it."""
    from hpctrain_plugins.environments.edf import enter

    return enter.layer(run, cluster, pins, binds)


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
    """The engine's own rules, judged before a job starts and fails; what the plan builds and where."""
    from hpctrain_plugins.environments.edf import check, image_request
    from hpctrain_plugins.environments.image import checks

    yield from check.problems(run)
    yield from checks.home(cluster, plan)
    request = image_request.read(run, cluster, plan.pins)
    yield from checks.unknown(plan, request.options.base, request.replaced)
    if request.base and request.adds and request.has and not request.options.containerfile:
        yield from checks.lacking(run, request.has)
        named, where = request.options.replace, f"{image_request.WHERE}.replace"
        yield from checks.replacing(request.has, request.base.text, request.replaced, named, where)


@hookimpl
def diagnose_rules() -> tuple[Rule, ...]:
    """What goes wrong with images."""
    from hpctrain_plugins.environments.edf import rules

    return rules.RULES
