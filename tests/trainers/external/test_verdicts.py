"""Our verdict on a file is that of the trainer's own code, which was asked once for every case.

`data/verdicts.json` holds what it said, with versions and command; `ask.py` asks again where the trainer
can be imported (`real.py`). All were run on a CPU. Where we refuse what a trainer takes, the reason stands in
STRICTER.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpctrain.errors import ConfigError, Problem
from hpctrain_plugins.trainers import automodel, nanotron, neox
from tests.trainers.external import real
from tests.trainers.external.cases import CASES, DATA, Case, text_of

SAID: dict[str, dict[str, Any]] = json.loads((DATA / "verdicts.json").read_text())
MODULES: dict[str, Any] = {"automodel": automodel, "nanotron": nanotron, "neox": neox}
NODES = {"nanotron": 1}
NO_LOADER = {"nanotron": {"trainer-world", "nanotron-local-rank"}}
"""What nanotron's loader cannot know, because it is not told the number of GPUs."""
STRICTER = {
    "batch of False": "False counts as 0 rows",
    "precision unknown": "NeoX trains in fp32 without a word",
    "a key twice": "the later one wins in silence",
    "decay style unknown": "Automodel stops at the first step after the warm-up",
}
NEWER = {
    "nanotron": {
        *("heads not shared", "too many tensor ranks", "heads no multiple", "more kv heads than heads"),
    }
}
"""What the loader refuses in later revisions than the plugin's CHECKOUT, whose model fails at it instead."""
ALL = [(name, case) for name, cases in CASES.items() for case in cases]


def _ours(trainer: str, case: Case) -> list[Problem]:
    gpus = 8 if trainer == "nanotron" else case.gpus
    try:
        found = MODULES[trainer].check_config(text_of(trainer, case), gpus, NODES.get(trainer, 0))
        return [p for p in found if p.fatal and p.code not in NO_LOADER.get(trainer, ())]
    except ConfigError as error:
        return list(error.problems)


@pytest.mark.parametrize(("trainer", "case"), ALL, ids=[f"{name}: {case.name}" for name, case in ALL])
def test_a_verdict(trainer: str, case: Case) -> None:
    ours, theirs = _ours(trainer, case), SAID[trainer]["said"][case.name]
    if case.name in STRICTER and not theirs:
        assert ours
    else:
        assert bool(ours) == bool(theirs), (ours, theirs)
    for problem in ours:
        assert problem.span is not None
        assert problem.span.file in text_of(trainer, case)
        assert problem.span.line > 0
        assert problem.message
        assert problem.message != theirs


def test_every_case_was_asked() -> None:
    for name, cases in CASES.items():
        assert set(SAID[name]["said"]) == {case.name for case in cases}
        assert len({case.name for case in cases}) == len(cases)
        assert SAID[name]["command"] == f"python -m tests.trainers.external.ask {name}"
        assert SAID[name]["of"]
    refused = [text for found in SAID.values() for text in found["said"].values() if text]
    assert len(ALL) >= 180
    assert len(refused) > 100
    assert all(name in {case.name for _, case in ALL} for name in STRICTER)


@pytest.mark.parametrize("trainer", CASES)
def test_the_trainer_still_says_so(trainer: str) -> None:
    """Its own code is asked again where it is at hand: Automodel's wherever `make setup` was run."""
    done = real.run(trainer, "-m", "tests.trainers.external.ask", trainer)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout[done.stdout.index("{") :])
    said = SAID[trainer]["said"]
    assert set(again) == set(said)
    changed = {name for name, text in again.items() if bool(text) != bool(said[name])}
    assert changed <= NEWER.get(trainer, set())
