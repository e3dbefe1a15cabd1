"""Pins for another architecture or Python than this computer's, resolved by uv."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpctrain.errors import ConfigError, NotReachable
from hpctrain.model.cluster import Cluster
from hpctrain.model.step import Pin
from hpctrain_plugins.environments.wheels import stubs as stubbing
from hpctrain_plugins.environments.wheels.lists import UNVERIFIED
from hpctrain_plugins.environments.wheels.pins import CLEAN, MINUTES, elsewhere, rest, unsolved
from hpctrain_plugins.environments.wheels.stubs import Stubs
from hpctrain_plugins.environments.wheels.wants import Wants, exact, name_of, normal

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools


def resolved(wants: Wants, cluster: Cluster, stubs: Stubs, tools: Tools) -> list[Pin]:
    """One pin per package, with the hashes of the wheels that fit the target."""
    _needs(wants, cluster, tools)
    target = (wants, cluster, tools)
    index = wants.options.first_index
    alone = ("--index-url", index) if index else elsewhere(wants)
    try:
        first = _compiled(*target, wants.options.first, alone)
    except NotReachable:
        if not index:
            raise
        first = _vendor(wants, stubs)
    fixed = tuple(f"{name}=={first[name].value.split()[0]}" for name in wants.first)
    reached = index and not any(UNVERIFIED in p.value for p in first.values())
    both = ("--extra-index-url", index, "--index-strategy", "unsafe-best-match") if reached else ()
    links = (f"--find-links={stubs.folder}",)
    rows = _compiled(*target, (*fixed, *rest(wants, stubs)), (*elsewhere(wants), *both, *links))
    return list({**rows, **{name: first[name] for name in wants.first}}.values())


def _vendor(wants: Wants, stubs: Stubs) -> dict[str, Pin]:
    """What cannot be looked at is pinned by its exact version, and marked; the rest sees a stub of it."""
    found = {}
    for requirement in wants.options.first:
        name, version = normal(name_of(requirement)), exact(requirement)
        if not version:
            raise NotReachable.of(
                "no-index",
                f"{wants.options.first_index} is out of reach, and {requirement} is no exact version",
                hint=f'first = ["{name}==…"]',
            )
        stubbing.write(stubs.folder, name, version, ())
        found[name] = Pin(name, "pypi", f"{version} {UNVERIFIED}")
    return found


def _needs(wants: Wants, cluster: Cluster, tools: Tools) -> None:
    if not wants.python:
        raise ConfigError.of(
            "no-python",
            f"{cluster.name} needs to know the Python of the environment",
            where="environment.python",
            hint='[environment]\npython = "3.11"',
        )
    if tools.which("uv") is None:
        raise NotReachable.of(
            "no-uv",
            f"uv resolves packages for {cluster.name}, and is not on this computer",
            hint="python -m pip install uv",
        )


def _compiled(
    wants: Wants, cluster: Cluster, tools: Tools, requirements: tuple[str, ...], places: tuple[str, ...]
) -> dict[str, Pin]:
    if not requirements:
        return {}
    with tempfile.TemporaryDirectory(prefix="hpctrain-lock-") as folder:
        told = Path(folder, "pylock.toml")
        platform = f"{cluster.arch}-manylinux_{wants.options.glibc.replace('.', '_')}"
        done = tools.run(
            (
                *("uv", "pip", "compile", "-", "--quiet", "--no-header", "--format", "pylock.toml"),
                *("--output-file", str(told), "--no-python-downloads", "--no-build"),
                *("--python-version", wants.python, "--python-platform", platform, *places),
            ),
            input="\n".join(requirements) + "\n",
            env=CLEAN,
            inherit=True,
            timeout=MINUTES * 60,
            ok=range(256),
        )
        if done.code:
            raise unsolved(wants, done)
        return {pin.name: pin for pin in _pins(told, wants.python, cluster.arch)}


def _pins(told: Path, python: str, arch: str) -> Iterator[Pin]:
    from hpctrain.runfile.toml import loads

    for row in loads(told.read_text(encoding="utf-8")).get("packages", ()):
        digests = [f"sha256:{d}" for d in fitting(row.get("wheels", ()), python, arch)]
        yield Pin(normal(row["name"]), "pypi", " ".join((row["version"], *digests)))


def fitting(wheels: list[dict[str, Any]], python: str, arch: str) -> list[str]:
    """The hashes of those wheels that may be taken for the target: a dozen lines less for each package."""
    minor = int(python.split(".")[1])
    found = []
    for wheel in wheels:
        name = wheel.get("name") or wheel.get("url", wheel.get("path", "")).rsplit("/", 1)[-1]
        pythons, abi, platform = name.removesuffix(".whl").split("-")[-3:]
        if platform != "any" and arch not in platform:
            continue
        if _suits(pythons, abi, minor) and "sha256" in wheel.get("hashes", {}):
            found.append(wheel["hashes"]["sha256"])
    return sorted(found)


def _suits(pythons: str, abi: str, minor: int) -> bool:
    versions = [int(v) for v in re.findall(r"(?:cp|py)3(\d+)", pythons)]
    if abi == "none" or abi == "abi3":
        return not versions or min(versions) <= minor
    return minor in versions and not abi.endswith("t")
