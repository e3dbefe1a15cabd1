"""The versions of the seven distributions: core and plugins move together, a cluster may move alone."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from hpctrain.versions import DISTRIBUTION
from tests.packaging.places import CLUSTERS, MEMBERS, project


def test_core_and_plugins_have_one_version() -> None:
    assert project("hpctrain")["version"] == project("hpctrain_plugins")["version"] == DISTRIBUTION


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_takes_this_hpctrain_and_none_that_may_break_it(member: str) -> None:
    lines = [*project(member).get("dependencies", [])]
    for extra in project(member).get("optional-dependencies", {}).values():
        lines += extra
    ours = [Requirement(line) for line in lines]
    ranges = [r.specifier for r in ours if r.name in ("hpctrain", "hpctrain-plugins") and r.specifier]
    major, minor, _ = Version(DISTRIBUTION).release
    following = f"{major + 1}.0.0" if major else f"0.{minor + 1}.0"
    assert ranges or member == "hpctrain"
    assert all(DISTRIBUTION in allowed and following not in allowed for allowed in ranges)


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_extra_takes_the_cluster_of_this_tree_and_every_later_one(name: str) -> None:
    (line,) = project("hpctrain")["optional-dependencies"][name]
    allowed = Requirement(line).specifier
    assert project(f"hpctrain_{name}")["version"] in allowed
    assert "999.0.0" in allowed, "a cluster moves alone, and states itself which hpctrain it works with"
