"""Which NCCL a run loads: at least the one that its torch was built with, from dated facts.

torch finds NCCL by a name without a path, so whatever is preloaded or loaded by a module first takes
its place. An older one lacks functions, and the job dies of `undefined symbol`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hpctrain.plugin import (
    Cluster,
    Cmd,
    EnvVar,
    Join,
    Layer,
    Line,
    Loc,
    Module,
    Pin,
    Plan,
    PlannedStep,
    Problem,
    RunSpec,
    Scope,
    Var,
    Word,
)

VARIABLE = "LD_PRELOAD"
BUNDLED_LIBRARY = "nvidia/nccl/lib/libnccl.so.2"
_MODULE = re.compile(r"brics/nccl(?:/(\d+(?:\.\d+)*)(?:-\d+)?)?")
_VERSION = re.compile(r"nccl[-/_]?(?:cu\d+[-/])?v?(\d+\.\d+(?:\.\d+)?)")


@attrs.frozen(kw_only=True)
class Needed:
    """What a torch needs of its NCCL."""

    torch: str
    version: str
    symbol: str
    """A function that came with that version; nothing where any will do."""

    def proof(self) -> Cmd:
        """The words that look at the library which is in memory."""
        symbol = (f"--symbol={self.symbol}",) if self.symbol else ()
        return Cmd.of("python", "-m", "hpctrain_job.gpus", f"--nccl={self.version}", *symbol)


@attrs.frozen(kw_only=True)
class Chosen:
    """A library, the modules that bring it, and why it is the one."""

    library: Word
    why: str
    modules: tuple[Module, ...] = ()

    @property
    def existence_check(self) -> tuple[Line, ...]:
        """The loader ignores a file that is missing, and says so in a line that nobody reads."""
        return (Cmd.of("ls", "-L", self.library, stdout="/dev/null"),)

    def preload(self) -> EnvVar:
        """The variable that makes tasks, and no other process, load this library."""
        return EnvVar(
            name=VARIABLE, value=self.library, at=Scope.TASK, why=self.why, source="isambard", fact="geodesic"
        )


def needed(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Needed | None:
    """What the pinned torch needs, or the asked one where nothing is pinned; None without torch."""
    torch = _torch(run, pins)
    facts = _facts(cluster)
    built = {numbers(t): v for t, v in facts.get("built_with_torch", {}).items()}
    older = [release for release in sorted(built) if torch and release <= numbers(torch)]
    if not older:
        return None
    version = built[older[-1]]
    new = numbers(version) >= numbers(facts["symbol_since"])
    return Needed(torch=torch, version=version, symbol=facts["symbol"] if new else "")


def choose(layer: Layer, run: RunSpec, cluster: Cluster, need: Needed) -> Chosen | None:
    """The environment's own first; a module's where there is none and it is new enough."""
    reason = f"torch {need.torch} was built with NCCL {need.version}"
    prefix = next((v.value for v in layer.env if v.name == "VIRTUAL_ENV"), None)
    if prefix is not None:
        path = f"lib/python{run.environment.python}/site-packages/{BUNDLED_LIBRARY}"
        library = prefix / path if isinstance(prefix, Loc) else Join(prefix, f"/{path}")
        return Chosen(library=library, why=f"{reason}: the environment's own, whatever a module brings")
    if layer.wrap:
        return None  # an image brings its own, at a path of its own
    for row in _system(cluster):
        if numbers(row["version"]) >= numbers(need.version):
            library = Join(Var("NCCL_ROOT"), "/lib/libnccl.so")
            why = f"{reason}, and {row['module']} is as new"
            return Chosen(library=library, why=why, modules=(Module(row["module"]),))
    return None


def problems(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterator[Problem]:
    """What speaks against the NCCL of each step."""
    need = needed(run, cluster, plan.pins)
    for step in plan.steps:
        loaded = [match for m in step.around.modules if (match := _MODULE.fullmatch(m.name))]
        if loaded and not step.step.inside and not step.step.trains:
            yield _in_build(step, loaded[-1][0])
        elif step.step.trains and need is not None:
            yield from _too_old(step, need, cluster, [match[1] or "" for match in loaded])


def _too_old(step: PlannedStep, need: Needed, cluster: Cluster, modules: list[str]) -> Iterator[Problem]:
    preload = next((v for v in step.around.env if v.name == VARIABLE), None)
    if preload is None:
        versions = [(f"the module brics/nccl/{v}", v) for v in modules if v]
    elif isinstance(preload.value, str):
        if not preload.value.startswith("/"):
            yield _relative(preload.value)
        match = _VERSION.search(preload.value)
        versions = [(f"{VARIABLE} = {preload.value}", match[1])] if match else []
    else:
        versions = []
    for who, version in versions:
        if numbers(version) < numbers(need.version):
            lacks = f", which lacks {need.symbol}" if need.symbol else ""
            source = cluster.source_of(_facts(cluster)["source"])
            yield Problem(
                code="nccl-too-old",
                message=f"{who} is NCCL {version}{lacks}; torch {need.torch} needs {need.version}",
                where=f"env.{VARIABLE}" if preload else "environment.ready.modules",
                notes=(f"{source.title}, checked {source.checked}",) if source else (),
                hint=f"leave {VARIABLE} out: the environment's own NCCL is preloaded"
                if preload
                else '[environment]\nuse = "uv"      (its own NCCL is preloaded)',
            )


def _relative(path: str) -> Problem:
    return Problem(
        code="preload-relative",
        message=f"{VARIABLE} = {path} is relative, and the loader ignores it in every other folder",
        where=f"env.{VARIABLE}",
        hint=f"leave {VARIABLE} out: the environment's own NCCL is preloaded by its absolute path",
    )


def _in_build(step: PlannedStep, module: str) -> Problem:
    return Problem(
        code="nccl-in-build",
        message=f"{module} is loaded while {step.name} builds; its symbols clash with torch's",
        where="modules.build",
        hint='[modules]\nbuild = ["reset", "cuda/12.6", "cudatoolkit"]',
    )


def _torch(run: RunSpec, pins: tuple[Pin, ...]) -> str:
    """2.10.0, without the build behind it."""
    # planning for another cluster imports this module too, and knows no packages
    from hpctrain_plugins.environments.wheels.packages_spec import exact, name_of

    pinned = next((p.value.split()[0] for p in pins if p.kind == "pypi" and p.name == "torch"), "")
    first = getattr(run.environment.options, "first", ())
    requirements = (*(p.requirement for p in run.environment.packages if p.requirement), *first)
    exactly = (version for r in requirements if name_of(r) == "torch" and (version := exact(r)))
    version = pinned or next(exactly, "")  # `torch>=2.4` of a stack leaves it to `first`
    return version.partition("+")[0]


def _facts(cluster: Cluster) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = cluster.facts.get("nccl", {})
    return facts


def _system(cluster: Cluster) -> list[Mapping[str, str]]:
    """The site's own, oldest first: the one that is new enough and no newer is closest to torch's."""
    return sorted(_facts(cluster).get("system", ()), key=lambda row: numbers(row["version"]))


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it with another: `2.27.3` as (2, 27, 3)."""
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])))
