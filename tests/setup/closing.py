"""The closing lines of the tests: what passed only when it was run again, and how many passed and failed.

usage: closing.py FOLDER      FOLDER/NAME.json and FOLDER/NAME.again.json: the reports of tests/report.py
       closing.py --record FOLDER      write tests/durations.json from them
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

DURATIONS = Path(__file__).parents[1] / "durations.json"
MOST = 2
"""Tests that may pass only when they are run again: a machine that two runs share is late at times."""


class Row(TypedDict):
    """How a test ended."""

    outcome: str
    seconds: float


Report = dict[str, Row]


def read(paths: Iterable[Path]) -> Report:
    """All these reports as one."""
    rows: Report = {}
    for path in paths:
        rows |= json.loads(path.read_text(encoding="utf-8"))
    return rows


def main(argv: list[str]) -> int:
    """Print the lines; 1 when a test failed or too many were run again."""
    folder = Path(argv[-1])
    repeated = set(folder.glob("*.again.json"))
    again, first = read(repeated), read(set(folder.glob("*.json")) - repeated)
    if argv[0] == "--record":
        return record(first)
    late = sorted(nodeid for nodeid, row in again.items() if row["outcome"] == "passed")
    for nodeid in late:
        print(f"passed only when it was run again: {nodeid}")
    if len(late) > MOST:
        print(f"test.sh: {len(late)} tests passed only when they were run again, more than {MOST}")
    counts = Counter(row["outcome"] for row in (first | again).values())
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return int(counts["failed"] > 0 or len(late) > MOST)


def record(rows: Report) -> int:
    """Write how long each function's cases took together; the unlisted ones took less than a second."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for nodeid, row in rows.items():
        seconds[nodeid.partition("[")[0]] += row["seconds"]
    earlier: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    earlier = {function: spent for function, spent in earlier.items() if function not in seconds}
    listed = earlier | {function: round(spent, 1) for function, spent in seconds.items() if spent >= 1}
    DURATIONS.write_text(json.dumps(dict(sorted(listed.items())), indent=0) + "\n", encoding="utf-8")
    print(f"{DURATIONS.name}: {len(listed)} functions take a second or more: {sum(listed.values()):.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
