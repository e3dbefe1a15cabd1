"""A conda prefix with its own Python, and pip's wheels inside.

It is entered by its path. `conda activate` would need a shell function of the site's conda, which a
job has to unload again, and puts the prefix in front just the same. What the scripts of packages in
`etc/conda/activate.d` do besides is run where `activate` asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from attrs import frozen

from hpctrain.plugin import (
    Cluster,
    ConfigError,
    EnvVar,
    How,
    Layer,
    Pin,
    Plan,
    Problem,
    Raw,
    RunSpec,
    Step,
    hookimpl,
)
from hpctrain_plugins.environments.wheels import options, unverified

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner
    from hpctrain_plugins.environments.wheels.build import Building

HPCTRAIN_API = 1
SCRIPTS = Raw(
    'set +u; for hpc_script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do '
    '[[ ! -e $hpc_script ]] || . "$hpc_script"; done; set -u'
)
"""Written for `conda activate`, whose scripts read variables that nobody set."""


@frozen(kw_only=True)
class Options(options.Options):
    """A prefix that conda makes and pip fills; besides these keys it has those of `[environment.venv]`."""

    program: str = "conda"
    """What makes the prefix, by name or path: a module's conda, mamba, micromamba."""
    channels: tuple[str, ...] = ("conda-forge",)
    """Where conda looks; no other channel of its configuration counts."""
    specs: tuple[str, ...] = ()
    """What conda installs besides Python and pip: "mpi4py=4.0". Not in the lock: say exact versions."""
    activate: bool = attrs.field(default=False, metadata=options.APART)
    """Also run the activation scripts that conda packages bring (compilers do)."""


@hookimpl
def pin(run: RunSpec, cluster: Cluster, tools: ProgramRunner) -> list[Pin]:
    """Every wheel at its version; conda's own packages are pinned by what `specs` says."""
    from hpctrain_plugins.environments.wheels import pins

    _python(run)
    return pins.resolve(run, cluster, tools)


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """One step where a place has network and target, else packages and wheels first."""
    return _building(run, cluster, pins).steps()


@hookimpl
def enter_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Layer:
    """The prefix in front of everything else, by its path."""
    building = _building(run, cluster, pins)
    layer = building.layer()
    conda_options: Options = run.environment.options or Options()
    env = tuple(v for v in layer.env if v.name != "VIRTUAL_ENV")
    conda_prefix = EnvVar(
        name="CONDA_PREFIX", value=building.artifact().loc, why="tools look here for the prefix"
    )
    virtual_env = EnvVar(
        name="VIRTUAL_ENV", how=How.UNSET, why="another environment's pip would install there"
    )
    task = (*layer.task, SCRIPTS) if conda_options.activate else layer.task
    return attrs.evolve(layer, env=(*env, conda_prefix, virtual_env), task=task)


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> list[Problem]:
    """What `lock` would refuse without asking anybody; pins whose hash nobody could check."""
    from hpctrain_plugins.environments.wheels import refused

    return [*refused.problems(run, cluster), *unverified.problems(plan.pins)]


def _building(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Building:
    from hpctrain_plugins.environments.wheels import build, ways  # a hook that checks builds nothing

    _python(run)
    conda_options: Options = run.environment.options or Options()
    return build.of(
        run, cluster, pins, ways.Conda(conda_options.program, conda_options.channels, conda_options.specs)
    )


def _python(run: RunSpec) -> None:
    if not run.environment.python:
        raise ConfigError.of(
            "no-python",
            "conda needs to know which Python it installs",
            where="environment.python",
            hint='[environment]\npython = "3.11"',
        )
