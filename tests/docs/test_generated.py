"""The pages that are written from the code still say what the code says."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from hpctrain import plugin
from hpctrain.cli.flags import Flags
from hpctrain.cli.help import command
from hpctrain.cli.out import Out
from hpctrain.cli.reference import topics
from hpctrain.cli.table import COMMANDS
from hpctrain.hooks import specs
from hpctrain.testing.plugin import UPDATE, updates
from tests.docs.generated import PAGES
from tests.house.sources import ROOT

CORE_OWN = {
    *("Asset", "Binding", "Plan", "Span", "Survey"),
    *("ConfigError", "NotReachable", "PluginError", "SubmitError"),
}
"""What hooks are given or raise, and nobody makes by hand; `help plan` is the command's."""


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


def test_every_value_that_plugins_import_is_explained() -> None:
    classes = {name for name in plugin.__all__ if isinstance(getattr(plugin, name), type)}
    unexplained = {name for name in classes if name.lower() not in topics()}
    assert unexplained == CORE_OWN
    assert not {topic for topic in topics() if topic in COMMANDS}


@pytest.mark.parametrize("topic", ["cluster-file", "values", "layer", "Launch", "place", "surround"])
def test_help_prints_a_section(topic: str) -> None:
    done = CliRunner().invoke(command, [topic], obj=Out.of(Flags(), {}), standalone_mode=False)
    assert done.exception is None
    known = topic.lower() in topics() or hasattr(specs, topic)
    assert known
    assert len(done.output.splitlines()) > 5
