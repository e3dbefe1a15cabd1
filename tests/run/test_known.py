"""What people met and wrote down: troubleshooting of the five sites' documents, failures of reviews."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hpctrain.run.diagnosis.diagnose import Diagnosis, diagnose_logs, rules_anywhere
from hpctrain.run.diagnosis.failures import ENDED
from hpctrain.run.diagnosis.printed import Printed
from hpctrain.runfile.reading.toml import loads

KNOWN = loads(Path(__file__).with_name("known.toml").read_text())
TRAINERS = {
    "leonardo": "automodel",
    "isambard": "neox",
    "alps": "nanotron",
    "frontier": "trl",
    "olivia": "trl",
}
"""What each document trains with."""


def diagnosed(text: str, code: int, cluster: str = "", trainer: str = "") -> Diagnosis:
    rules = rules_anywhere({}, cluster, trainer)
    ended = Printed(log=ENDED, text=f"exit code {code}\n")
    return diagnose_logs([Printed(log="log", text=f"step 1\n{text}\n")], rules, [ended])


@pytest.mark.parametrize("row", KNOWN["document"], ids=lambda row: row["entry"])
def test_a_document_s_troubleshooting_is_known(row: Mapping[str, Any]) -> None:
    first = diagnosed(row["log"], 1, row["cluster"], TRAINERS[row["cluster"]]).causes[0].rule
    assert first.name == row["rule"]
    assert row["cure"] in first.fix


@pytest.mark.parametrize("row", KNOWN["review"], ids=lambda row: row["failure"])
def test_a_reviewer_s_failure_is_known(row: Mapping[str, Any]) -> None:
    assert row["rule"] in [cause.rule.name for cause in diagnosed(row["log"], row["exit"]).causes]
