"""Apptainer: a base image as it is, and what it lacks in one file that is mounted at /user-software.

A venv does not survive a move, so it is made at the path where it is used: the build binds a folder
there. Thousands of small files become one, which a parallel file system serves as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.plugin import Bind, Binding, Cluster, Layer, Pin, Plan, Problem, Rule, RunSpec, Step, hookimpl
from hpctrain_plugins.environments.apptainer.options import Options as Options

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

HPCTRAIN_API = 1


@hookimpl
def pin(
    run: RunSpec, cluster: Cluster, binding: Binding, pins: tuple[Pin, ...], tools: ProgramRunner
) -> list[Pin]:
    """The image's digest, what it has, and every package at its version on top of that."""
    from hpctrain_plugins.environments.apptainer import pins as pinning

    return pinning.resolve(run, cluster, binding, pins, tools)


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """The image, a list of what it has where nobody asked it, the overlay, and the proof of it."""
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
    """An image that nobody asked, what of it is replaced; a target that is the home directory."""
    from hpctrain_plugins.environments.apptainer import image_request
    from hpctrain_plugins.environments.image import checks

    request = image_request.read(run, cluster, plan.pins)
    name = request.image.text
    problems = [*checks.home(cluster, plan), *checks.unknown(plan, name, request.replaced)]
    if request.overlay and request.has:
        problems += checks.lacking(run, request.has)
        named, where = request.options.replace, "environment.apptainer.replace"
        problems += checks.replacing(request.has, name, request.replaced, named, where)
    return problems


@hookimpl
def diagnose_rules() -> tuple[Rule, ...]:
    """What goes wrong with images and overlays."""
    from hpctrain_plugins.environments.apptainer import rules

    return rules.RULES
