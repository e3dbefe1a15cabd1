"""What a cluster's page says besides its run files holds too: parts of runs plan, commands exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.docs.runner import Page
from tests.house.sources import ROOT


@pytest.mark.parametrize("cluster", ["isambard", "leonardo"])
def test_the_sections_work(cluster: str, tmp_path: Path) -> None:
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    page, done = Page(folder, home), 0
    for block in blocks((ROOT / f"hpc_{cluster}/README.md").relative_to(ROOT)):
        if block.language == "toml" and block.words:
            page.do(block)
            done += 1
        elif block.language == "console":
            page.parse(block)
            done += 1
    assert done >= 6
