"""What a test run leaves for the next one: how each test ended, how long it took, and who runs which part.

A pytest plugin, asked for by the environment:

* `HPCTRAIN_REPORT=FILE`: write outcome and seconds of every test there, as JSON.
* `HPCTRAIN_QUEUE=FOLDER`: several pytest processes share the tests. A file of tests is run by the one that
  first makes its mark in the folder. Each begins with its tests on twins, then come the slowest files.
* `HPCTRAIN_BELOW=SECONDS`: leave out test functions that took longer when `tests/durations.json` was written.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

DURATIONS = Path(__file__).with_name("durations.json")
REPORT, QUEUE, BELOW = "HPCTRAIN_REPORT", "HPCTRAIN_QUEUE", "HPCTRAIN_BELOW"


def recorded() -> dict[str, float]:
    """Seconds of all cases of a test function, by `FILE::FUNCTION`; what took less than one is not listed."""
    seconds: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return seconds


def function_of(nodeid: str) -> str:
    """`FILE::FUNCTION` of a test's id, without its parameters."""
    return nodeid.partition("[")[0]


def file_of(nodeid: str) -> str:
    """The file of a test's id."""
    return nodeid.partition("::")[0]


def part_of(item: pytest.Item) -> tuple[str, str]:
    """What one process runs as a whole: the tests of a file that need the same of the machine."""
    kinds = ("twin", "slurm")
    return file_of(item.nodeid), next((kind for kind in kinds if item.get_closest_marker(kind)), "")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is too slow, and put the slowest files first; tests of a file keep their order."""
    seconds = recorded()
    if below := os.environ.get(BELOW):
        slow = {item for item in items if seconds.get(function_of(item.nodeid), 0) > float(below)}
        config.hook.pytest_deselected(items=list(slow))
        items[:] = [item for item in items if item not in slow]
    if QUEUE in os.environ:
        items[:] = slowest_first(items, seconds)


def slowest_first(items: list[pytest.Item], seconds: dict[str, float]) -> list[pytest.Item]:
    """Items by part: those on twins, and of these and the others the slowest files first."""
    totals: defaultdict[str, float] = defaultdict(float)
    for function, duration in seconds.items():
        totals[file_of(function)] += duration

    def rank(item: pytest.Item) -> tuple[bool, float, str, str]:
        file, kind = part_of(item)
        return (kind != "twin", -totals[file], file, kind)

    return sorted(items, key=rank)


class Shared:
    """Runs the parts that no other process has taken from the queue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, part: tuple[str, str]) -> bool:
        """Whether this process is the first to ask for it."""
        try:
            (self.folder / "--".join(part).replace("/", "--")).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """The items to run; a part is taken when the one before is at its last test."""
        for part, group in groupby(session.items, key=part_of):
            if self.take(part):
                yield from group

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """pytest's own loop, over what is taken."""
        if session.testsfailed or session.config.option.collectonly:
            return None  # a file could not be read, or nothing is to be run: pytest's own loop tells
        queue = self.items(session)
        item = next(queue, None)
        while item is not None:
            following = next(queue, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True


class Report:
    """Collects how each test ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, str] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test's outcome is the worst of its three phases."""
        self.seconds[report.nodeid] += report.duration
        if self.outcomes.get(report.nodeid) != "failed" and (
            report.when == "call" or report.outcome != "passed"
        ):
            self.outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        rows = {
            nodeid: {"outcome": outcome, "seconds": round(self.seconds[nodeid], 2)}
            for nodeid, outcome in self.outcomes.items()
        }
        self.path.write_text(json.dumps(rows, indent=0), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """What the environment asks for."""
    if path := os.environ.get(REPORT):
        config.pluginmanager.register(Report(Path(path)), "hpctrain-report")
    if folder := os.environ.get(QUEUE):
        config.pluginmanager.register(Shared(Path(folder)), "hpctrain-queue")
