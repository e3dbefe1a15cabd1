"""Known failures found in logs: which rule, in which line, and what is said where none knows."""

from __future__ import annotations

import io
import subprocess
import tracemalloc
from pathlib import Path
from typing import IO, cast

import pytest

from hpctrain.model.job import Rule, State
from hpctrain.run.diagnosis import diagnose as module
from hpctrain.run.diagnosis.diagnose import diagnose, diagnose_logs, rules_anywhere, rules_of
from hpctrain.run.diagnosis.failures import rules
from hpctrain.run.diagnosis.printed import TAIL, WIDEST, Line, Printed, read
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.status import StepState
from hpctrain.run.waiting import failure
from tests.conftest import ROOT

LOGS = Path(__file__).with_name("logs")
JOB = ROOT / "core/hpctrain/render/job.sh"
FAILED = StepState(step="train", state=State.FAILED)
FULL = Rule(name="full", pattern=r"No space left on device", cause="the disk is full", fix="free it")
MEMORY = Rule(name="memory", pattern=r"^torch\.OutOf", cause="memory", fix="less", sure="certain")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "small/1-01234567")
    found.logs.mkdir(parents=True)
    return found


def test_the_surest_first_with_its_line_and_other_ranks(run: RunDirectory) -> None:
    run.log("train").write_text("No space left on device\n")
    run.log("train", 0).write_text("step 1\nbar\r50 %\rtorch.OutOfMemory no\rstep 2\nlater\n")
    run.log("train", 2).write_text("one\ntorch.OutOfMemoryError: 16 GiB")
    run.log("train", 10).write_text("torch.OutOfMemoryError\n")
    first, second = diagnose(run, FAILED, [FULL, MEMORY]).causes
    assert first.rule == MEMORY
    assert first.evidence == Line(
        log="logs/train.rank2.log", number=2, text="torch.OutOfMemoryError: 16 GiB", before=("one",)
    )
    assert first.also == ("logs/train.rank10.log",)
    assert (second.rule, second.evidence.place) == (FULL, "logs/train.log:1")


def test_without_a_rule_the_first_error_and_what_came_before(run: RunDirectory) -> None:
    run.log("train").write_text("".join(f"line {n}\n" for n in range(40)) + "ValueError: no\nRuntimeError\n")
    found = diagnose(run, FAILED, [FULL])
    assert not found.causes
    assert found.first is not None
    assert (found.first.number, found.first.text) == (41, "ValueError: no")
    assert found.first.before == tuple(f"line {n}" for n in range(25, 40))
    assert diagnose(run, StepState(step="env", state=State.FAILED), [FULL]) == module.Diagnosis()


def test_rules_come_from_the_plugins_of_the_run(run: RunDirectory) -> None:
    plugins = ["trainers:trl (hpctrain-plugins 0.1.0)", "trainers:gone (x 1)", "hooks:mine.py (file /x)"]
    run.record.append("created", plugins=plugins)
    found = rules_of(run, {})
    assert "gpu-memory" in {rule.name for rule in found}
    assert {rule.source.split(" ")[0] for rule in found} == {"trainers:trl", "core"}


def test_a_log_that_is_no_run_s_is_asked_by_what_it_may_be_of() -> None:
    sources = [rule.source.split(" ")[0] for rule in rules_anywhere({})]
    assert {"core", "environments:apptainer"} <= set(sources)
    assert not set(sources) & {"isambard", "trainers:neox"}
    named = [rule.source.split(" ")[0] for rule in rules_anywhere({}, "isambard", "neox")]
    assert set(named[: named.index("core")]) == {"isambard", "trainers:neox"}


def test_line_numbers_of_a_log_that_is_read_from_its_end() -> None:
    printed = read(io.BytesIO(b"x\n" * 1000 + b"No space left on device\n"), "log", 40)
    (cause,) = diagnose_logs([printed], [FULL]).causes
    assert (cause.evidence.number, cause.evidence.text) == (1001, "No space left on device")


class Endless(io.RawIOBase):
    """One line of so many bytes, which never were anywhere at once."""

    def __init__(self, size: int, end: bytes) -> None:
        self.left, self.end = size, end

    def read(self, size: int = -1) -> bytes:
        size = min(size, self.left)
        self.left -= size
        if not size:
            self.end, end = b"", self.end
            return end
        return b"x" * size


def test_a_gigabyte_in_one_line_takes_the_memory_of_its_end() -> None:
    tracemalloc.start()
    printed = read(cast("IO[bytes]", Endless(1 << 30, b" No space left on device " + b"y" * 1000)), "log")
    (cause,) = diagnose_logs([printed], [FULL]).causes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * TAIL
    assert (cause.evidence.number, cause.evidence.before) == (1, ())
    assert "No space left on device" in cause.evidence.text
    assert len(cause.evidence.text) <= WIDEST + 2


def test_what_steers_a_terminal_hides_nothing() -> None:
    colours = b"\x1b[1;31mtorch\x1b[0m.Out\x1b]0;title\x07OfMemory\xc2\x9b0m\x08\r\n"
    assert read(io.BytesIO(colours), "log").text == "torch.OutOfMemory\n"
    assert read(io.BytesIO(b"bar 1\rbar 2\nend\r\n"), "log").text == "bar 2\nend\n"


def test_many_ranks_take_no_more_memory_than_few(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpctrain.run.diagnosis.printed.TOTAL", 100)
    monkeypatch.setattr("hpctrain.run.diagnosis.printed.LEAST_TAIL", 30)
    for rank in range(8):
        run.log("train", rank).write_text("No space left on device\n" + "x" * 40)
    assert diagnose(run, FAILED, [FULL]).causes == ()


HEAD = '{0}Traceback (most recent call last):\n{0}  File "x.py", line 3, in f\n{0}    g()\n'


def test_the_first_traceback_is_that_of_the_rank_that_failed_first(run: RunDirectory) -> None:
    peer = "[rank0]: RuntimeError: Connection reset by peer\n"
    run.log("train", 0).write_text(f"step 1\n{HEAD.format('[rank0]: ')}{peer}")
    run.log("train", 1).write_text(
        f"step 1\n{HEAD.format('')}KeyError: 'text'\n\nDuring handling of that\nTypeError\n"
    )
    diagnosis = diagnose(run, FAILED, rules())
    assert not diagnosis.causes
    assert diagnosis.first is not None
    assert (diagnosis.first.log, diagnosis.first.text) == ("logs/train.rank1.log", "KeyError: 'text'")
    assert diagnosis.first.before[-1] == "    g()"


def test_lines_of_other_ranks_between_those_of_a_traceback_do_not_end_it() -> None:
    head, *body = HEAD.format("[rank1]: ").splitlines()
    text = "\n[rank0]: done\n".join([head, *body, "[rank1]: KeyError: 'text'"])
    first = diagnose_logs([Printed(log="log", text=text)], rules()).first
    assert first is not None
    assert first.text == "[rank1]: KeyError: 'text'"


def logged(name: str) -> module.Diagnosis:
    """What is said of two ranks under the real torchrun (torch 2.13); rank 1 failed first."""
    with (LOGS / f"torchrun-{name}.log").open("rb") as stream:
        return diagnose_logs([read(stream, name)], rules())


def test_torchrun_s_root_cause_is_the_answer() -> None:
    first = logged("key").first
    assert first is not None
    assert first.text == "[rank1]: KeyError: 'text'"
    (cause,) = logged("kill").causes
    assert (cause.rule.name, cause.evidence.text.split(" : ")[0].strip()) == ("killed", "traceback")
    assert "Signal 9" in cause.evidence.text
    assert [cause.rule.name for cause in logged("usr1").causes] == ["not-warned"]


def test_what_a_rank_wrote_into_torchrun_s_error_file_is_read_from_its_table() -> None:
    text = (LOGS / "torchrun-rec.log").read_text()
    table = text[text.index("torch.distributed.elastic.multiprocessing.errors.ChildFailedError") :]
    first = diagnose_logs([Printed(log="log", text=table)], rules()).first
    assert first is not None
    assert first.text.strip() == "KeyError: 'text'"


def test_a_consequence_is_told_where_nothing_else_is() -> None:
    lost = "[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268"
    only = diagnose_logs([Printed(log="log", text=f"{HEAD.format('[rank0]: ')}{lost}\n")], rules())
    assert [cause.rule.name for cause in only.causes] == ["collective-error"]
    both = f"{HEAD.format('[rank0]: ')}{lost}\n{HEAD.format('[rank1]: ')}[rank1]: KeyError: 'text'\n"
    diagnosis = diagnose_logs([Printed(log="log", text=both)], rules())
    assert not diagnosis.causes
    assert diagnosis.first is not None
    assert diagnosis.first.text == "[rank1]: KeyError: 'text'"


def notes(run: RunDirectory, text: str) -> tuple[str, ...]:
    """What `submit --wait` says of a step that failed with this log."""
    run.log("train").write_text(text)
    return failure(run, FAILED, {}).problems[0].notes[:-1]


def test_who_waited_is_told_the_cause_and_its_cure(run: RunDirectory) -> None:
    first, evidence, cure = notes(run, "torch.OutOfMemoryError: CUDA out of memory.\n")
    assert first == "cause: certain: the GPU's memory is full"
    assert evidence == "evidence: torch.OutOfMemoryError: CUDA out of memory."
    assert cure.startswith("fix: a smaller batch per GPU")
    assert notes(run, "ValueError: 7 is odd\n") == ("cause: unknown", "first error: ValueError: 7 is odd")
    assert notes(run, "all is well\n") == ()


def test_an_earlier_attempt_s_failure_is_not_the_last_one_s(run: RunDirectory) -> None:
    earlier = "step 1\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    run.log("train").write_text(f"{earlier}step 1\nOSError: [Errno 28] No space left on device\n")
    assert len(diagnose(run, FAILED, rules()).causes) == 2
    sizes = run.step("train") / "log-sizes"
    sizes.parent.mkdir(parents=True)
    sizes.write_text(f"{len(earlier)} train.log\nnonsense\n")
    (cause,) = diagnose(run, FAILED, rules()).causes
    assert (cause.rule.name, cause.evidence.place) == ("disk-full", "logs/train.log:4")
    run.log("train").write_text("torch.OutOfMemoryError\n")
    (cause,) = diagnose(run, FAILED, rules()).causes
    assert cause.rule.name == "gpu-memory"


def test_a_job_says_where_its_attempt_begins_in_its_logs(run: RunDirectory) -> None:
    (run.path / "steps/train").mkdir(parents=True)
    for said, rule in (("MemoryError", "host-memory"), ("OSError: [Errno 28]", "disk-full")):
        script = (
            f"set -euo pipefail; export HPC_STEP=train HPC_JOB=1 HPC_ATTEMPT=0; "
            f". {JOB.with_name('identity.sh')}; . {JOB}\n"
            f"hpc_begin_job; echo '{said}' | tee -a logs/train.rank0.log >>logs/train.log; exit 1"
        )
        subprocess.run(("bash", "-c", script), cwd=run.path, timeout=60)
        assert [cause.rule.name for cause in diagnose(run, FAILED, rules()).causes] == [rule]
