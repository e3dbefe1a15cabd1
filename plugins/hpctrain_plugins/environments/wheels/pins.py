"""Resolving an environment's packages for its target: with pip here, with uv for another machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hpctrain.plugin import Cluster, ConfigError, Pin, RunSpec, raise_fatal
from hpctrain_plugins.environments.wheels import packages_spec, pins_foreign, pins_native, refused, stubs
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner
    from hpctrain_job.sdist import Places


def resolve(
    run: RunSpec,
    cluster: Cluster,
    tools: ProgramRunner,
    program: tuple[str, ...] = (),
    constraints: tuple[str, ...] = (),
) -> list[Pin]:
    """One pin per package; what pip would take here is what is pinned for here."""
    raise_fatal(refused.problems(run, cluster))
    spec = attrs.evolve(packages_spec.read(run, cluster, program), constraints=constraints)
    python = _python(spec, tools) if spec.native else ""
    python_pins = (
        [Pin("python", "python", _version(python, tools))] if spec.native and not spec.python else []
    )
    if not (spec.wheels or spec.compile or spec.options.first):
        return python_pins
    uv = "" if spec.native else pins_foreign.program(cluster, tools)
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as name:
        (folder := Path(name, "stubs")).mkdir()
        source_stubs = stubs.make(spec, _places(spec), folder)
        rows: Iterable[Pin]
        if spec.native:
            rows = pins_native.resolved(spec, python, source_stubs, Path(name, "env"), tools)
        else:
            rows = pins_foreign.resolved(spec, cluster, source_stubs, tools, uv)
        versions = {s.name: s.version for s in spec.compile}
        return [
            *python_pins,
            *(p for p in rows if p.name not in source_stubs.archives),
            *source_stubs.pins(versions),
        ]


def _places(spec: PackagesSpec) -> Places:
    """Where source archives are looked for: as the options say, else as pip is told on this computer."""
    from hpctrain_job import sdist  # what speaks to an index takes long to import

    if not any(s.version for s in spec.compile):
        return sdist.Places()
    pip_config = sdist.configured(os.environ)
    indexes = (spec.options.index_url,) if spec.options.index_url else pip_config.indexes
    return sdist.Places(indexes, (*spec.options.find_links, *pip_config.links))


def _python(spec: PackagesSpec, tools: ProgramRunner) -> str:
    """The interpreter on this computer that the environment will be made from."""
    interpreter = spec.options.python or (f"python{spec.python}" if spec.python else sys.executable)
    if tools.which(interpreter) is None:
        raise ConfigError.of(
            "no-python",
            f"there is no {interpreter} on this computer",
            where="environment.python",
            hint=f'[environment]\npython = "{sys.version_info[0]}.{sys.version_info[1]}"',
        )
    return interpreter


def _version(python: str, tools: ProgramRunner) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return str(tools.run((python, "-c", code)).out).strip()
