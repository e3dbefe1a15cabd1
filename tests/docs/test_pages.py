"""What the pages tell people to type works, and prints what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import PLAIN, blocks, commands, matches, pages
from tests.docs.runner import Page
from tests.house.sources import ROOT


@pytest.mark.parametrize("page", pages(), ids=str)
def test_the_page_works(page: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    reader = Page(folder, home)
    for block in blocks(page):
        if block.language not in PLAIN:
            reader.do(block)


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
