"""Tests are late where two runs share the cores: no limit is a bare number of seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import ROOT

CLOCK = re.compile(r"time\.(?:monotonic|time|perf_counter)\(\) - \w+ <=? [^\n]*")
"""How long something took, against a limit."""
ENDS = re.compile(r"\w\.(?:communicate\([^\n]*timeout=|wait\(|join\()(?:timeout=)?(?:10|20|30)\b[^\n]*")
"""How long a process or thread is waited for, where that is short."""
EXACT = {
    "tests/rig/slurm.py": "ends what is left of a rig, and kills it after that",
    "tests/browser.py": "ends a browser, and kills it after that",
}


def bare(text: str) -> Iterator[str]:
    """The lines with a limit that does not know how patient this run is."""
    for line in text.splitlines():
        for found in (*CLOCK.findall(line), *ENDS.findall(line)):
            if "PATIENCE" not in found:
                yield found


def test_every_limit_is_as_patient_as_the_run() -> None:
    """`within`, `wait_for`, or a factor of PATIENCE: of tests/patience.py."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if name not in EXACT and path != Path(__file__) and "setup" not in path.parts:
            found += [f"{name}: {line}" for line in bare(path.read_text(encoding="utf-8"))]
    assert found == []


def test_the_rule_sees_what_it_forbids() -> None:
    late = ["assert time.monotonic() - began < 8", "out, _ = child.communicate(timeout=30)", "job.wait(10)"]
    assert len(list(bare("\n".join(late)))) == 3
    assert not list(bare("assert time.monotonic() - began < 8 * PATIENCE\nchild.wait(10 * PATIENCE)"))
