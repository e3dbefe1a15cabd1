"""Two runs share the tests without running one twice, and the closing lines name what was run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.report import BELOW, QUEUE, REPORT
from tests.setup import closing

ONE = """
import pathlib, time
import pytest

@pytest.mark.parametrize("number", range(3))
def test_quick(number):
    time.sleep(0.1)
    with pathlib.Path("ran").open("a") as ran:
        ran.write("NAME\\n")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Six files of three tests each."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p tests.report\n")
    for name in "abcdef":
        (tmp_path / f"test_{name}.py").write_text(ONE.replace("NAME", name))
    return tmp_path


def start(project: Path, name: str, *words: str, **environ: str) -> subprocess.Popen[bytes]:
    outer = {key: value for key, value in os.environ.items() if key not in (QUEUE, BELOW)}
    env = {**outer, "PYTHONPATH": str(ROOT), REPORT: f"{project}/{name}.json", **environ}
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words)
    return subprocess.Popen(argv, cwd=project, env=env, stdout=subprocess.DEVNULL)


def report(project: Path, name: str) -> Mapping[str, closing.Row]:
    rows: Mapping[str, closing.Row] = json.loads((project / f"{name}.json").read_text())
    return rows


def test_two_runs_share_the_tests(project: Path) -> None:
    (project / "queue").mkdir()
    runs = [start(project, name, HPCTRAIN_QUEUE=str(project / "queue")) for name in ("one", "two")]
    assert {run.wait(120) for run in runs} <= {0, 5}, "5: the first one had taken everything"
    assert sorted((project / "ran").read_text().split()) == sorted("abcdef" * 3)
    first, second = report(project, "one"), report(project, "two")
    assert not first.keys() & second.keys()
    assert len(first) + len(second) == 18


def test_what_another_run_has_taken_is_left_to_it(project: Path) -> None:
    (project / "queue").mkdir()
    (project / "queue/test_b.py--").touch()
    assert start(project, "one", HPCTRAIN_QUEUE=str(project / "queue")).wait(120) == 0
    assert set((project / "ran").read_text().split()) == set("acdef")


def test_without_a_queue_all_run(project: Path) -> None:
    assert start(project, "all").wait(120) == 0
    assert len(report(project, "all")) == 18
    assert {row["outcome"] for row in report(project, "all").values()} == {"passed"}


def test_a_file_that_cannot_be_read_fails(project: Path) -> None:
    (project / "queue").mkdir()
    (project / "test_broken.py").write_text("import nowhere\n")
    assert start(project, "one", HPCTRAIN_QUEUE=str(project / "queue")).wait(120) == 2


def rows(**outcomes: str) -> str:
    return json.dumps({nodeid: {"outcome": outcome, "seconds": 1.0} for nodeid, outcome in outcomes.items()})


@pytest.mark.parametrize(("late", "code"), [(0, 0), (2, 0), (3, 1)])
def test_what_passed_only_again_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], late: int, code: int
) -> None:
    names = [f"test_{number}" for number in range(5)]
    failed = names[:late]
    (tmp_path / "rest.json").write_text(rows(**{n: "failed" if n in failed else "passed" for n in names}))
    (tmp_path / "rest.again.json").write_text(rows(**dict.fromkeys(failed, "passed")))
    (tmp_path / "twins.json").write_text(rows(test_skipped="skipped"))
    assert closing.main([str(tmp_path)]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[:late] == [f"passed only when it was run again: {name}" for name in failed]
    assert lines[-1] == "5 passed, 0 failed, 1 skipped"


def test_what_failed_twice_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("rest", "rest.again"):
        (tmp_path / f"{name}.json").write_text(rows(test_one="failed"))
    assert closing.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "0 passed, 1 failed, 0 skipped\n"
