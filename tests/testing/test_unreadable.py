"""A plugin that cannot be read is one failure of its kit, which says what to do; no other test runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.seeded import judged

KINDS = {"cluster": "Cluster", "environment": "Environment", "scheduler": "Scheduler", "trainer": "Trainer"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_plugin_that_is_not_installed_is_one_failure(kind: str, tmp_path: Path) -> None:
    base = f"{KINDS[kind]}Conformance"
    text = f'from hpctrain.testing import {base}\n\n\nclass TestBeech({base}):\n    {kind} = "beech"\n'
    verdicts = judged(tmp_path, kind, {}, text)
    (message,) = verdicts.failed.values()
    assert f'no {kind} "beech" is installed in ' in message
    assert "pip install -e ." in message
    assert re.search(r"^1 failed, \d\d+ skipped", verdicts.said, re.MULTILINE), verdicts.said


def test_a_plugin_that_cannot_be_imported_is_one_failure(tmp_path: Path) -> None:
    text = (
        "from hpctrain.testing import TrainerConformance\n\n\n"
        'class TestBeech(TrainerConformance):\n    trainer = "beech"\n'
    )
    verdicts = judged(tmp_path, "trainer", {"beech": "import no_such_module\n"}, text)
    (message,) = verdicts.failed.values()
    assert "trainer beech (acme-beech 1) cannot be imported: ModuleNotFoundError" in message
