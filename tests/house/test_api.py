"""What plugins and programs stand on changes only with a line in CHANGELOG.md.

`tests/golden/api.txt` holds every public name with its signature, and the newest line under "API" of
CHANGELOG.md at that time. `pytest tests/house/test_api.py --update-golden` records a change, and refuses
while that line is the same.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from hpctrain.testing.plugin import UPDATE, updates
from tests.house.signatures import signatures
from tests.house.sources import ROOT

RECORD = ROOT / "tests/golden/api.txt"
HEAD = "# The newest line on the API in CHANGELOG.md when this was recorded:"
HEADING = "\n### API\n"


class NoLine(Exception):
    """The API changed, and CHANGELOG.md does not say how."""


def newest_line(changelog: str) -> str:
    """The first item under the first heading "API", on one line."""
    section = changelog.partition(HEADING)[2].partition("\n#")[0].strip()
    return " ".join(section.partition("\n- ")[0].split())


def recorded(path: Path) -> tuple[str, list[str]]:
    """The line of CHANGELOG.md and the signatures of the record."""
    _, line, *lines = path.read_text(encoding="utf-8").splitlines()
    return line.removeprefix("# "), lines


def record(path: Path, lines: list[str], changelog: str) -> None:
    """Write the record; NoLine where the signatures changed and the newest line did not."""
    line = newest_line(changelog)
    if path.exists() and recorded(path)[1] != lines and recorded(path)[0] == line:
        raise NoLine(
            'first say in CHANGELOG.md, at the top of "### API", what changed for plugins and programs'
        )
    path.write_text("\n".join((HEAD, f"# {line}", *lines, "")), encoding="utf-8")


def difference(path: Path, lines: list[str]) -> list[str]:
    """What changed since it was recorded."""
    diff = difflib.unified_diff(recorded(path)[1], lines, "recorded", "now", lineterm="", n=0)
    return [line for line in diff if not line.startswith("@@")]


def test_the_api_is_as_it_was_recorded(pytestconfig: pytest.Config) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if updates(pytestconfig):
        record(RECORD, signatures(), changelog)
    changes = difference(RECORD, signatures())
    assert not changes, (
        "The API changed. Say how in CHANGELOG.md, at the top of '### API' (CONTRIBUTING.md has the policy), "
        f"then  pytest tests/house/test_api.py {UPDATE}\n" + "\n".join(changes)
    )
    assert newest_line(changelog) == recorded(RECORD)[0]


def test_a_change_needs_a_line(tmp_path: Path) -> None:
    path = tmp_path / "api.txt"
    before = "# Changelog\n\n## [1]\n\n### Added\n\n- x\n\n### API\n\n- one\n  two\n- older\n\n## [0]\n"
    record(path, ["f(x)"], before)
    assert recorded(path) == ("- one two", ["f(x)"])
    assert difference(path, ["f(x, y)"])[2:] == ["-f(x)", "+f(x, y)"]
    with pytest.raises(NoLine):
        record(path, ["f(x, y)"], before)
    record(path, ["f(x, y)"], before.replace("- one", "- `f` takes y\n- one"))
    assert recorded(path) == ("- `f` takes y", ["f(x, y)"])


def test_what_is_recorded_is_what_plugins_use() -> None:
    lines = signatures()
    for beginning in (
        "hpctrain.Session.submit(self, *, locked: bool = False) -> LiveRun",
        "hpctrain.plugin.Launch.world -> int",
        "hpctrain.plugin.Launch(*, nodes: int",
        "hpctrain.command.Session is hpctrain.Session",
        "hpctrain.plugin.ProgramRunner.run(self, argv: Sequence[str], *,",
        "hpctrain.plugin.How.SET = ",
        "hpctrain.plugin.Word = str | Var | ",
        "class hpctrain.TimedOut(NotReachable)",
        "RunState.is_in_progress -> bool",
        "hpctrain.toolbox.pinned_value(",
        "class hpctrain.testing.ClusterConformance(",
        "hook launch(run: RunSpec, cluster: Cluster, train: Train) -> ",
    ):
        assert [line for line in lines if line.startswith(beginning)], beginning
    assert not [line for line in lines if " at 0x" in line or str(ROOT) in line]
