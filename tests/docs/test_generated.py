"""The pages that are written from the code still say what the code says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpctrain.cli.commands.help import command
from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.cli.show.reference import keys
from hpctrain.cli.show.sections import Section
from hpctrain.cli.show.tables import cluster_file, run_file, settings
from hpctrain.testing.plugin import UPDATE, updates
from tests.docs import parts
from tests.docs.blocks import pages
from tests.docs.generated import PAGES
from tests.house.sources import ROOT


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_the_code_says(name: str, pytestconfig: pytest.Config) -> None:
    path, text = ROOT / "docs" / name, PAGES[name]()
    if updates(pytestconfig):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"if that is right: pytest tests/docs {UPDATE}"


def test_every_key_and_hook_says_what_it_means() -> None:
    for name, page in PAGES.items():
        empty = [
            line for line in page().splitlines() if line.startswith("|") and ("|  |" in line or "| ." in line)
        ]
        assert not empty, name
    assert PAGES["hooks.md"]().count("```python hook\n@hookimpl") >= 16


TOPICS = {
    "cluster-file": "[[queue]] of cluster.toml",
    "run-file": "[resources] of the run file",
    "settings": "[ui] of the settings",
    "values": "Layer",
    "layer": "wrap   tuple[Word, ...]",
    "Launch": "ranks_per_node   int",
    "place": "[[place]] of cluster.toml",
    "surround": "Example::",
    "Survey": "free_gb",
    "Tools": "run(argv, *, cwd=None",
    "submit_env": "[policy] of cluster.toml",
    "policy.submit_env": "submit_env   list of string",
    "storage.runs.path": "[storage.NAME] of cluster.toml",
    "queue_named": "queue_named(name)   Queue | None",
    "SubmitError": "exit code 5",
    "account": "[resources] of the run file",
    "train.trl.train_dataset": "[train.trl] of the run file",
}
"""Word -> what is among the lines of its help."""


@pytest.mark.parametrize("topic", TOPICS)
def test_help_prints_a_section(topic: str) -> None:
    done = CliRunner().invoke(command, [topic], obj=Out.of(Flags(), {}), standalone_mode=False)
    assert done.exception is None
    assert TOPICS[topic] in done.output
    assert len(done.output.splitlines()) >= 3


@pytest.mark.parametrize("tables", [cluster_file, run_file, settings])
def test_help_finds_every_key(tables: Callable[[], list[Section]]) -> None:
    rows = [(section, row) for section in tables() for row in section.rows]
    assert len(rows) > 5
    for section, row in rows:
        shown = [*keys(row.name), *keys(".".join((*section.path, row.name)))]
        places = [(other.file, other.path) for other in shown if row in other.rows]
        assert places.count((section.file, section.path)) == 2, (section.title, row.name)


@pytest.mark.parametrize("page", [*pages(), Path("ARCHITECTURE.md")], ids=str)
def test_the_parts_of_a_page_are_as_the_code_says(page: Path, pytestconfig: pytest.Config) -> None:
    path = ROOT / page
    text = parts.written(path.read_text(encoding="utf-8"))
    if updates(pytestconfig):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"if that is right: pytest tests/docs {UPDATE}"


def test_every_part_stands_in_a_page() -> None:
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in (*pages(), Path("ARCHITECTURE.md"))]
    assert {name for text in texts for name, _ in parts.parts_of(text)} == set(parts.PARTS)
