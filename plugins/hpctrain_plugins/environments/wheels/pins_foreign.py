"""Pins for another architecture or Python than this computer's, resolved by uv."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpctrain.plugin import Cluster, NotReachable, Pin
from hpctrain.toolbox import read_toml
from hpctrain_plugins.environments.wheels import index_failures, uv_tool
from hpctrain_plugins.environments.wheels import stubs as stubbing
from hpctrain_plugins.environments.wheels.lists import UNVERIFIED
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, exact, name_of, normal
from hpctrain_plugins.environments.wheels.resolving import (
    CLEAN,
    MINUTES,
    constrained,
    elsewhere,
    later_requirements,
)
from hpctrain_plugins.environments.wheels.stubs import Stubs

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner


def resolved(spec: PackagesSpec, cluster: Cluster, stubs: Stubs, tools: ProgramRunner, uv: str) -> list[Pin]:
    """One pin per package, with the hashes of the wheels that fit the target; `uv` is the program's path."""
    target = (spec, cluster, tools, uv)
    index = spec.options.first_index
    first_places = ("--index-url", index) if index else elsewhere(spec)
    try:
        first = _compiled(*target, spec.options.first, first_places)
    except NotReachable:
        if not index:
            raise
        first = _vendor(spec, stubs)
    fixed = tuple(f"{name}=={first[name].value.split()[0]}" for name in spec.first)
    reached = index and not any(UNVERIFIED in p.value for p in first.values())
    extra_index = ("--extra-index-url", index, "--index-strategy", "unsafe-best-match") if reached else ()
    links = (f"--find-links={stubs.folder}",)
    rows = _compiled(
        *target, (*fixed, *later_requirements(spec, stubs)), (*elsewhere(spec), *extra_index, *links)
    )
    return list({**rows, **{name: first[name] for name in spec.first}}.values())


def _vendor(spec: PackagesSpec, stubs: Stubs) -> dict[str, Pin]:
    """What cannot be looked at is pinned by its exact version, and marked; the rest sees a stub of it."""
    pins = {}
    for requirement in spec.options.first:
        name, version = normal(name_of(requirement)), exact(requirement)
        if not version:
            raise NotReachable.of(
                "no-index",
                f"{spec.options.first_index} is out of reach, and {requirement} is not an exact version",
                hint=f'first = ["{name}==…"]',
            )
        stubbing.write(stubs.folder, name, version, ())
        pins[name] = Pin(name, "pypi", f"{version} {UNVERIFIED}")
    return pins


def program(cluster: Cluster, tools: ProgramRunner) -> str:
    """The path of uv; asked for before anything is brought from the network."""
    path = uv_tool.path(tools)
    if path is None:
        raise NotReachable.of(
            "no-uv",
            f"uv resolves packages for {cluster.name}, and is not on this computer",
            hint="python -m pip install uv",
        )
    return path


def _compiled(
    spec: PackagesSpec,
    cluster: Cluster,
    tools: ProgramRunner,
    uv: str,
    requirements: tuple[str, ...],
    places: tuple[str, ...],
) -> dict[str, Pin]:
    if not requirements:
        return {}
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as folder:
        lock_file = Path(folder, "pylock.toml")
        platform = f"{cluster.arch}-manylinux_{spec.options.glibc.replace('.', '_')}"
        done = tools.run(
            (
                *(uv, "pip", "compile", "-", "--quiet", "--no-header", "--format", "pylock.toml"),
                *("--output-file", str(lock_file), "--no-python-downloads", "--no-build"),
                *("--python-version", spec.python, "--python-platform", platform, *places),
                *constrained(spec, Path(folder)),
            ),
            input="\n".join(requirements) + "\n",
            env={**CLEAN, **uv_tool.environment(os.environ)},
            inherit=True,
            timeout=MINUTES * 60,
            ok=range(256),
        )
        if done.code:
            raise index_failures.why("uv", spec, tools.scrubbed(done.err))
        return {pin.name: pin for pin in _pins(lock_file, spec.python, cluster.arch)}


def _pins(lock_file: Path, python: str, arch: str) -> Iterator[Pin]:
    for row in read_toml(lock_file.read_text(encoding="utf-8")).get("packages", ()):
        digests = [f"sha256:{d}" for d in fitting(row.get("wheels", ()), python, arch)]
        yield Pin(normal(row["name"]), "pypi", " ".join((row["version"], *digests)))


def fitting(wheels: list[dict[str, Any]], python: str, arch: str) -> list[str]:
    """The hashes of those wheels that may be taken for the target: a dozen lines less for each package."""
    minor = int(python.split(".")[1])
    digests = []
    for wheel in wheels:
        name = wheel.get("name") or wheel.get("url", wheel.get("path", "")).rsplit("/", 1)[-1]
        pythons, abi, platform = name.removesuffix(".whl").split("-")[-3:]
        if platform != "any" and arch not in platform:
            continue
        if _suits(pythons, abi, minor) and "sha256" in wheel.get("hashes", {}):
            digests.append(wheel["hashes"]["sha256"])
    return sorted(digests)


def _suits(pythons: str, abi: str, minor: int) -> bool:
    versions = [int(v) for v in re.findall(r"(?:cp|py)3(\d+)", pythons)]
    if abi == "none" or abi == "abi3":
        return not versions or min(versions) <= minor
    return minor in versions and not abi.endswith("t")
