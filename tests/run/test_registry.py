"""The list of runs: appended by many, torn by crashes, written again by a scan."""

from __future__ import annotations

from pathlib import Path

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
from hpctrain.run.this_computer import state_folder
from tests.run.conftest import mode, python

DIGEST = "4f1c9a2e" * 8


def test_the_state_folder_follows_the_xdg_rules() -> None:
    assert state_folder({"HOME": "/h"}) == Path("/h/.local/state/hpctrain")
    assert state_folder({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/hpctrain")
    assert state_folder({"HOME": "/h", "XDG_STATE_HOME": "rel"}) == Path("/h/.local/state/hpctrain")


def test_runs_are_listed_in_order_once_and_privately(tmp_path: Path, any_umask: None) -> None:
    registry = Registry.of({"HOME": str(tmp_path)})
    assert registry.entries() == []
    runs = [RunDirectory.create(tmp_path / "runs", n, DIGEST, {"plan.json": ""}) for n in "ba"]
    for run in (*runs, runs[0]):
        registry.add(run, "frontier")
    assert [entry.run for entry in registry.entries()] == runs
    assert registry.entries()[0].cluster == "frontier"
    assert mode(registry.path) == 0o600
    assert mode(registry.path.parent) == 0o700


def test_rubbish_and_torn_lines_cost_only_themselves(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "runs.jsonl")
    registry.add(RunDirectory(Path("/r/x/1-4f1c9a2e")))
    with registry.path.open("ab") as file:
        file.write(b'null\n[]\n{"path": 3}\n\xff\xfe\n{"path": "/r/y/1-4f')
    registry.add(RunDirectory(Path("/r/z/1-4f1c9a2e")))
    assert [str(e.path) for e in registry.entries()] == ["/r/x/1-4f1c9a2e", "/r/z/1-4f1c9a2e"]


def test_a_scan_finds_what_the_list_lost(tmp_path: Path) -> None:
    roots = [tmp_path / "r1", tmp_path / "r2"]
    runs = [RunDirectory.create(root, "demo", DIGEST, {"plan.json": ""}) for root in (*roots, *roots)]
    (tmp_path / "r1" / "demo" / "9-00000000").mkdir()
    registry = Registry(tmp_path / "state" / "runs.jsonl")
    registry.add(runs[0])
    assert registry.scan([*roots, tmp_path / "missing"]) == 3
    assert {e.path for e in registry.entries()} == {r.path for r in runs}
    assert registry.scan(roots) == 0


ADDER = """
import sys
from pathlib import Path
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
for n in range(1, 101):
    Registry(Path(sys.argv[1])).add(RunDirectory(Path(f"/runs/{sys.argv[2]}/{n}-00000000")))
"""


def test_concurrent_adders_lose_nothing(tmp_path: Path) -> None:
    adders = [python(ADDER, tmp_path / "list", who) for who in "ab"]
    assert [a.communicate(timeout=60)[1] for a in adders] == ["", ""]
    assert len(Registry(tmp_path / "list").entries()) == 200
