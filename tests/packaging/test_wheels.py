"""What lies in the wheels, and what they say of themselves."""

from __future__ import annotations

import re
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.packaging.places import CLUSTERS, MEMBERS, ROOT, project

HEAVY = {"torch", "transformers", "trl", "peft", "datasets", "deepspeed", "accelerate"}
ONLY_IN_EXTRAS = {"numpy"}
KILOBYTES = 1000


def metadata(wheel: Path) -> Message:
    """The METADATA of a wheel: its fields, and the long description as its payload."""
    with ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", line, maxsplit=1)[0].replace("_", "-").lower() for line in requirements}


@pytest.mark.parametrize("member", MEMBERS)
def test_a_wheel_holds_its_package_its_licence_and_nothing_else(wheels: dict[str, Path], member: str) -> None:
    packages = {
        "hpctrain": {"hpctrain", "hpctrain_job"},
        "hpctrain_plugins": {"hpctrain_plugins", "hpctrain_tokens", "hpctrain_trl"},
    }.get(member, {member.replace("hpctrain", "hpc")})
    with ZipFile(wheels[member]) as archive:
        names = archive.namelist()
        licence = next(n for n in names if n.endswith("dist-info/licenses/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert not [n for n in names if re.search(r"(^|/)(tests?|conftest\.py)(/|$)|\.py[co]$", n)]
    assert wheels[member].stat().st_size < KILOBYTES * 1000


@pytest.mark.parametrize("member", MEMBERS)
def test_a_wheel_holds_every_file_of_its_source(wheels: dict[str, Path], member: str) -> None:
    with ZipFile(wheels[member]) as archive:
        packed = set(archive.namelist())
    tops = {name.partition("/")[0] for name in packed}
    source = ROOT / "core" if member == "hpctrain" else MEMBERS[member]
    files = {
        str(path.relative_to(source))
        for top in tops
        for path in (source / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files - packed == set()
    assert {n for n in packed if ".dist-info/" not in n} == files


@pytest.mark.parametrize("member", MEMBERS)
def test_every_package_says_that_it_is_typed(wheels: dict[str, Path], member: str) -> None:
    names = ZipFile(wheels[member]).namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert {f"{package}/py.typed" for package in packages} <= set(names)


def test_what_is_no_python_travels_too(wheels: dict[str, Path]) -> None:
    packed = {name: set(ZipFile(wheel).namelist()) for name, wheel in wheels.items()}
    assert {"hpctrain/cli/help.txt", "hpctrain/render/publish.sh"} <= packed["hpctrain"]
    assert {"hpctrain_plugins/local/cluster.toml", "hpctrain_plugins/local/demo/run.toml"} <= packed[
        "hpctrain_plugins"
    ]
    for name in CLUSTERS:
        inside = packed[f"hpctrain_{name}"]
        assert f"hpc_{name}/cluster.toml" in inside
        assert any(n.startswith(f"hpc_{name}/examples/") and n.endswith(".toml") for n in inside)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_wheel_states_the_version_of_its_source(wheels: dict[str, Path], member: str) -> None:
    assert metadata(wheels[member])["Version"] == project(member)["version"]


@pytest.mark.parametrize("member", MEMBERS)
def test_no_wheel_asks_for_what_only_jobs_need(wheels: dict[str, Path], member: str) -> None:
    requirements = metadata(wheels[member]).get_all("Requires-Dist", [])
    always = [line for line in requirements if "extra ==" not in line]
    assert _names(requirements) & HEAVY == set()
    assert _names(always) & ONLY_IN_EXTRAS == set()


def test_an_extra_for_each_cluster_and_no_other(wheels: dict[str, Path]) -> None:
    extras = project("hpctrain")["optional-dependencies"]
    clusters = {"local", *CLUSTERS}
    features = {"convert", "data", "fast", "hub"}
    assert set(extras) == {*clusters, *features, "all", "clusters", "testing"}
    wanted = {name: _names(extras[name]) for name in clusters}
    assert wanted == {
        name: {"hpctrain-plugins" if name == "local" else f"hpctrain-{name}"} for name in clusters
    }
    for name, parts in (("clusters", clusters), ("all", {"clusters", *features})):
        listed = re.fullmatch(r"hpctrain\[(.*)\]", extras[name][0])
        assert listed
        assert set(listed[1].split(",")) == parts
    built = {f"hpctrain-{name}" for name in CLUSTERS} | {"hpctrain", "hpctrain-plugins"}
    assert {metadata(wheel)["Name"] for wheel in wheels.values()} == built
