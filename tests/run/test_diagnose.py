"""Known failures found in logs: which rule, in which line, and what is said where none knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.model.job import Rule
from hpctrain.run import diagnose as module
from hpctrain.run.diagnose import diagnose, rules_of
from hpctrain.run.directory import RunDirectory

FULL = Rule(name="full", pattern=r"No space left on device", cause="the disk is full", fix="free it")
MEMORY = Rule(name="memory", pattern=r"^torch\.OutOf", cause="memory", fix="less", sure="certain")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "small/1-01234567")
    found.logs.mkdir(parents=True)
    return found


def test_the_surest_first_with_its_line_and_other_ranks(run: RunDirectory) -> None:
    run.log("train").write_text("No space left on device\n")
    run.log("train", 0).write_text("step 1\nbar\r50 %\rtorch.OutOfMemoryError: no\nlater\n")
    run.log("train", 2).write_text("one\ntorch.OutOfMemoryError: 16 GiB")
    run.log("train", 10).write_text("torch.OutOfMemoryError\n")
    first, second = diagnose(run, "train", [FULL, MEMORY]).causes
    assert (first.rule, first.evidence.log, first.evidence.number) == (MEMORY, run.log("train", 2), 2)
    assert first.evidence.text == "torch.OutOfMemoryError: 16 GiB"
    assert first.also == (run.log("train", 10),)
    assert (second.rule, second.evidence.log) == (FULL, run.log("train"))


def test_line_numbers_of_a_log_that_is_read_from_its_end(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAIL", 40)
    run.log("train").write_text("x\n" * 1000 + "No space left on device\n")
    (cause,) = diagnose(run, "train", [FULL]).causes
    assert (cause.evidence.number, cause.evidence.text) == (1001, "No space left on device")


def test_without_a_rule_the_first_error_and_what_came_before(run: RunDirectory) -> None:
    run.log("train").write_text("".join(f"line {n}\n" for n in range(40)) + "ValueError: no\nRuntimeError\n")
    found = diagnose(run, "train", [FULL])
    assert not found.causes
    assert found.first is not None
    assert (found.first.number, found.first.text) == (41, "ValueError: no")
    assert found.first.before == tuple(f"line {n}" for n in range(25, 40))
    assert diagnose(run, "env", [FULL]) == module.Diagnosis()


def test_rules_come_from_the_plugins_of_the_run(run: RunDirectory) -> None:
    plugins = ["trainers:trl (hpctrain-plugins 0.1.0)", "trainers:gone (x 1)", "hooks:mine.py (file /x)"]
    run.record.append("created", plugins=plugins)
    rules = rules_of(run, {})
    assert "gpu-memory" in {rule.name for rule in rules}
    assert {rule.source.split(" ")[0] for rule in rules} == {"trainers:trl", "core"}
