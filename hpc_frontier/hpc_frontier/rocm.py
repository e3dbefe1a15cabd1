"""Whether torch and the loaded ROCm module are of one ROCm: a wheel says its own behind the `+`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpctrain.plugin import Plan, Problem, RunSpec

_MODULE = re.compile(r"rocm/(\d+(?:\.\d+)*)")
_WHEEL = re.compile(r"\btorch==\S+?\+rocm(\d+(?:\.\d+)*)")


def problems(run: RunSpec, plan: Plan) -> Iterator[Problem]:
    """A torch for another ROCm than the module's, for what is compiled against it and for what it loads."""
    wheel, place = _wheel(run)
    step = plan.step_named("train")
    modules = [match[1] for m in step.around.modules if (match := _MODULE.fullmatch(m.name))] if step else []
    if not wheel or not modules or modules[-1].split(".")[:2] == wheel.split(".")[:2]:
        return
    loaded = modules[-1]
    compiled = ", ".join(package.name for package in run.environment.compile)
    yield Problem(
        code="rocm-mismatch",
        message=f"torch is built for ROCm {wheel}, and the module is rocm/{loaded}",
        where=place,
        notes=(
            *((f"hipcc {loaded} compiles {compiled} against that torch",) if compiled else ()),
            f"libraries of {loaded}, RCCL among them, may be found before torch's own",
        ),
        hint=f"rocm/{wheel} in [cluster.frontier.modules] of your settings, or a torch +rocm{_minor(loaded)}",
        fatal=False,
    )


def _wheel(run: RunSpec) -> tuple[str, str]:
    """The ROCm of the torch that is asked for, and the key that asks."""
    first = (f"environment.{run.environment.use}.first", getattr(run.environment.options, "first", ()))
    packages = ("environment.packages", [package.requirement for package in run.environment.packages])
    for place, requirements in (packages, first):
        for requirement in requirements:
            if match := _WHEEL.match(requirement):
                return match[1], place
    return "", ""


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
