"""What an index shows of each wheel: its long description, its addresses, what it is classified as."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from release.address import address, holders
from release.version import version_of
from tests.packaging.environment import LIMIT
from tests.packaging.places import CLUSTERS, MEMBERS, ROOT, VERSIONS, project, pyproject
from tests.packaging.test_wheels import metadata

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def test_an_index_takes_every_wheel(wheels: dict[str, Path]) -> None:
    argv = (sys.executable, "-m", "twine", "check", "--strict", *map(str, wheels.values()))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(MEMBERS)


@pytest.mark.parametrize("member", MEMBERS)
def test_every_link_of_the_description_is_a_whole_address(wheels: dict[str, Path], member: str) -> None:
    fields = metadata(wheels[member])
    assert fields["Description-Content-Type"] == "text/markdown"
    targets = LINK.findall(str(fields.get_payload()))
    written = LINK.findall((MEMBERS[member] / "README.md").read_text(encoding="utf-8"))
    assert len(targets) == len(written) > 0
    assert [target for target in targets if not target.startswith("https://")] == []


@pytest.mark.parametrize("member", MEMBERS)
def test_links_into_the_project_lead_to_files_of_the_tree(wheels: dict[str, Path], member: str) -> None:
    fields = metadata(wheels[member])
    # A release of everything has the tag v0.2.0; a cluster that is released alone has not.
    revision = "HEAD" if member.endswith(CLUSTERS) else f"v{fields['Version']}"
    inside = re.compile(rf"{re.escape(address())}/(?:blob|raw)/([^/]+)/([^)#\s]+)")
    found = inside.findall(str(fields.get_payload()))
    assert found
    assert {at for at, _ in found} == {revision}
    assert [path for _, path in found if not (ROOT / path).is_file()] == []


def test_the_image_is_a_file_and_no_page(wheels: dict[str, Path]) -> None:
    text = str(metadata(wheels["hpctrain"]).get_payload())
    assert f"]({address()}/raw/v{version_of(ROOT)}/docs/loss.svg)" in text


@pytest.mark.parametrize("member", MEMBERS)
def test_the_members_are_described_alike(wheels: dict[str, Path], member: str) -> None:
    fields = metadata(wheels[member])
    assert fields["Author"] == fields["Maintainer"] == "The hpctrain developers"
    assert fields["License-Expression"] == "Apache-2.0"
    classifiers = fields.get_all("Classifier", [])
    assert classifiers == project("hpctrain")["classifiers"]
    assert {f"Programming Language :: Python :: {version}" for version in VERSIONS} <= set(classifiers)
    urls = dict(line.split(", ", 1) for line in fields.get_all("Project-URL", []))
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith(address()) for url in urls.values())
    for url in urls.values():
        _, mark, path = url.partition("/HEAD/")
        assert not mark or (ROOT / path).exists(), url


@pytest.mark.parametrize("member", MEMBERS)
def test_building_needs_the_same_everywhere(member: str) -> None:
    assert pyproject(member)["build-system"] == pyproject("hpctrain")["build-system"]


def test_the_address_is_the_same_in_every_file() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in holders()}
    projects = {(folder / "pyproject.toml").relative_to(ROOT).as_posix() for folder in MEMBERS.values()}
    assert names >= {"CITATION.cff", *projects}
    organisation = address().rpartition("/")[0]
    for path in holders():
        text = path.read_text(encoding="utf-8")
        assert text.count(f"{organisation}/") == len(re.findall(rf"{re.escape(address())}\b", text)), path
