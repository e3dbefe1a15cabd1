"""Core's rules over logs of real programs, over what only resembles a failure, and over how processes end."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.model.job import State
from hpctrain.run.diagnosis.diagnose import diagnose
from hpctrain.run.diagnosis.failures import CERTAIN, CONSEQUENCE, GUESS, LIKELY, rules
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.status import StepState
from hpctrain.runfile.reading.toml import loads

CASES: list[Mapping[str, str]] = loads(Path(__file__).with_name("failures.toml").read_text())["case"]
"""A log of each rule, where it comes from, and a near miss."""
SIGNALS = {
    "segfault": (signal.SIGSEGV, "Segmentation fault"), "killed": (signal.SIGKILL, "Killed"),
    "aborted": (signal.SIGABRT, "Aborted"), "bus-error": (signal.SIGBUS, "Bus error"),
    "illegal-instruction": (signal.SIGILL, "Illegal instruction"),
    "terminated": (signal.SIGTERM, "Terminated"), "not-warned": (signal.SIGUSR1, "User defined signal 1"),
    "processor-time": (signal.SIGXCPU, "CPU time limit exceeded"),
}  # fmt: skip
CODES = {"command-missing": 127, "not-executable": 126}
UNRELATED = [
    f"{start}\nValueError: {end}"
    for start in (
        "step 1 loss 2.0",
        "epoch 1\n[rank0]: done",
        "137 rows, exit codes 0 and 1",
        "loading 404 files, 40 of 139 killed off by the filter",
        '{"code": 139, "text": "of table 2"}',
    )
    for end in ("7 is odd", "the batch has no rows", "expected 3 columns, got 4", "unknown label 'x'")
]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "small/1-01234567")
    directory.logs.mkdir(parents=True)
    return directory


def names(run: RunDirectory, text: str, code: int | None = 1, reason: str = "") -> list[str]:
    """The rules that know a step with this log, this exit code and the scheduler's reason."""
    run.log("train").write_text(text)
    step = StepState(step="train", state=State.FAILED, exit_code=code, reason=reason)
    return [cause.rule.name for cause in diagnose(run, step, rules()).causes]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['from']}")
def test_a_failure_is_known_and_what_resembles_it_is_not(run: RunDirectory, case: Mapping[str, str]) -> None:
    assert names(run, f"starting\nstep 1 loss 2.0\n{case['log']}\n")[:1] == [case["rule"]]
    assert names(run, f"starting\n{case['near']}\n") == []


@pytest.mark.parametrize("rule", SIGNALS)
def test_a_signal_is_known_by_its_number_and_in_the_words_of_whoever_saw_it(
    run: RunDirectory, rule: str
) -> None:
    number, words = SIGNALS[rule]
    code = 128 + number
    assert names(run, "step 1 loss 2.0\n", code) == [rule]
    assert names(run, f"rows: {code}, code: {code}\n") == []
    for line in (
        f"srun: error: n1: task 0: {words}",
        f"srun: error: nid001: tasks 0-3,5: {words} (core dumped)",
        f"slurm_script: line 28:  8156 {words}                  python3 main.py",
        f"  traceback : Signal {number:d} ({number.name}) received by PID 13530",
        f"python exited with exit code {code}",
        f"4713.0            python               FAILED      0:{number:d}",
    ):
        assert names(run, f"step 1\n{line}\n") == [rule], line


@pytest.mark.parametrize("rule", CODES)
def test_an_exit_code_of_the_shell_is_known(run: RunDirectory, rule: str) -> None:
    assert names(run, "step 1 loss 2.0\n", CODES[rule]) == [rule]
    assert names(run, f"{CODES[rule]} rows\n") == []


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("it used more memory than it asked for (OUT_OF_MEMORY)", "job-memory"),
        ("it ran into its time limit (TIMEOUT), exit code 143", "time-limit"),
        ("a node failed (NODE_FAIL)", "node-failure"),
        ("a job of higher priority took its nodes (PREEMPTED)", "preempted"),
    ],
)
def test_what_the_scheduler_alone_knows_is_a_cause(run: RunDirectory, reason: str, rule: str) -> None:
    assert names(run, "step 1 loss 2.0\n", 143, reason) == [rule]
    assert names(run, "step 1 loss 2.0\n", 1, "its commands failed (NonZeroExitCode)") == []


def test_a_guess_is_not_shown_beside_a_reason(run: RunDirectory) -> None:
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\nKilled\n"
    assert names(run, killed, 137) == ["job-memory"]
    assert names(run, "sh: 1: trian: not found\n", 127) == ["command-missing"]
    error = "Traceback (most recent call last):\n  File x\nValueError: 7 is odd\n"
    assert names(run, f"sh: 1: nvidia-smi: not found\n{error}") == []


@pytest.mark.parametrize("log", UNRELATED)
def test_what_no_rule_knows_is_unknown(run: RunDirectory, log: str) -> None:
    assert names(run, log) == []


def test_every_rule_has_a_case_and_is_whole() -> None:
    covered = {case["rule"] for case in CASES} | set(SIGNALS) | set(CODES)
    assert {rule.name for rule in rules()} == covered
    assert len({rule.name for rule in rules()}) == len(rules())
    for rule in rules():
        assert rule.sure in (CERTAIN, LIKELY, CONSEQUENCE, GUESS)
        assert rule.page.startswith("https://")
        assert not rule.cause.endswith(".")
        assert rule.fix


@pytest.mark.parametrize("text", ["a:1.b-[c]: ", "A", " ", "error: a: b: ", "[rank0]: ", "Error docker:// "])
def test_every_rule_reads_a_long_line_quickly(text: str) -> None:
    line = text * (400_000 // len(text))
    for rule in rules():
        began = time.process_time()
        assert re.search(rule.pattern, line, re.MULTILINE) is None, rule.name
        assert time.process_time() - began < 1, rule.name


def test_the_trainers_own_error_and_its_hint_are_the_answer(run: RunDirectory) -> None:
    failed = StepState(step="train", state=State.FAILED, exit_code=70)
    run.log("train").write_text(
        "step 1\nerror[memory]: DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 GB\n"
        "  hint: per_device_train_batch_size smaller\n"
    )
    (cause,) = diagnose(run, failed, rules()).causes
    assert (cause.rule.name, cause.rule.sure, cause.evidence.number) == ("memory", "certain", 2)
    assert cause.rule.fix == "per_device_train_batch_size smaller"
    run.log("train").write_text(
        'error[package]: zero_stage needs deepspeed\n  where: train.trl.x\n  hint: packages = ["deepspeed"]\n'
    )
    (cause,) = diagnose(run, failed, rules()).causes
    assert (cause.rule.cause, cause.rule.fix) == ("zero_stage needs deepspeed", 'packages = ["deepspeed"]')
    assert names(run, "error[E0382]: borrow of moved value\n") == []
