"""What the pages tell people to type works, and prints what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import PLAIN, blocks, commands, matches, pages
from tests.docs.installed import Install
from tests.docs.installed import install as install
from tests.docs.reader import Reader, stated
from tests.docs.runner import Page
from tests.house.sources import ROOT
from tests.packaging.conftest import dist as dist


@pytest.mark.parametrize("page", pages(), ids=str)
def test_the_page_works(page: Path, tmp_path: Path, install: Install) -> None:
    """With what its own install line brings, an empty home, and an environment of PATH and HOME."""
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    reader = Reader(install, folder, home)
    if page.name != "CONTRIBUTING.md":  # its reader has a checkout
        reader.install(stated((ROOT / page).read_text(encoding="utf-8")))
    typed = Page(reader, folder)
    for block in blocks(page):
        if block.language not in PLAIN:
            typed.do(block)


@pytest.mark.parametrize("page", sorted(ROOT.glob("hpc_*/README.md")), ids=lambda page: page.parent.name)
def test_a_cluster_s_page_begins_with_its_extra_alone(page: Path) -> None:
    """What a later line needs more of, a line before it installs: test_the_page_works has nothing else."""
    assert stated(page.read_text(encoding="utf-8")) == (f"hpctrain[{page.parent.name.removeprefix('hpc_')}]",)


@pytest.mark.parametrize("page", [*pages(), Path("ARCHITECTURE.md")], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text)
    assert not [t for t in targets if not (ROOT / page.parent / t).exists()]


def test_output_is_compared() -> None:
    text = "$ one \\\n  --two\nyes\n$ three\na … b\n…\nend\n"
    assert list(commands(text)) == [("one --two", "yes\n"), ("three", "a … b\n…\nend\n")]
    assert matches("a … b\n…\nend\n", "a x b\nmore\nmore\nend\n")
    assert matches("a … b\n…\nend\n", "a x b\nend\n")
    assert not matches("a … b\nend\n", "a x b\nmore\nend\n")
    assert not matches("", "something")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "$ bin/pip install --find-links dist 'hpctrain[alps]' uv    # dist: wheels",
            ("hpctrain[alps]", "uv"),
        ),
        (
            "To follow: `pip install --find-links=dist 'hpctrain[all,testing]'` ([x](y))",
            ("hpctrain[all,testing]",),
        ),
        ("$ uv tool install -p 3.12 'hpctrain[local]>=0.1'", ("hpctrain[local]>=0.1",)),
        ("$ pip install -e '.[test]'\n$ pip install hpctrain\n$ pip install 'hpctrain[hub]'", ("hpctrain",)),
    ],
)
def test_install_lines_are_read(text: str, expected: tuple[str, ...]) -> None:
    assert stated(text) == expected


def test_a_page_without_an_install_line_fails() -> None:
    with pytest.raises(AssertionError, match="names no install line"):
        stated("$ pip download 'hpctrain[all]'\n$ hpctrain plan")


def test_what_the_install_line_lacks_is_seen(tmp_path: Path, install: Install) -> None:
    (tmp_path / "work").mkdir()
    reader = Reader(install, tmp_path / "work", tmp_path)
    reader.install(("hpctrain[local]",))
    reader.look_at(["hpctrain status x", "export X=1"], "page:1")
    for command, wrong in (
        ("hpctrain convert a -o b", "does not bring numpy"),
        ("hf auth login", "no hf"),
        ("hpctrain status --nothing", "nothing"),
        ("hpctrain plam", "plam"),
        ("hpctrain plan --on alps", "error"),
    ):
        with pytest.raises(AssertionError, match=wrong):
            reader.look_at([command], "page:1")
