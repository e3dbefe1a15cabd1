"""Core's rules over logs of real programs, over what only resembles a failure, and over the exit record."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpctrain.run.diagnose import diagnose
from hpctrain.run.directory import RunDirectory
from hpctrain.run.failures import RULES

CASES: Sequence[tuple[str, str, str]] = (
    ("gpu-memory",
     "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.",
     "peak memory 38 of 64 GB: far from out of memory"),
    ("host-memory", "Traceback (most recent call last):\n  File x.py, line 1\nMemoryError",
     "retrying: caught MemoryError, now with half of the rows"),
    ("host-memory", "[88.1] Out of memory: Killed process 4213 (python) total-vm:14302kB",
     "fraction of memory: 0.9 out of memory: 64 GB"),
    ("job-memory",
     ("slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been "
     "OOM Killed."), "slurmstepd: info: oom killer is configured for this step"),
    ("job-memory", "slurmstepd-n7: error: Step 12.0 exceeded memory limit (787456 > 751616), being killed",
     "no row exceeded memory limit (of 10 tries)"),
    ("job-memory", "slurmstepd: error: Detected 2 oom-kill event(s) in step 3.0 cgroup.",
     "the oom-kill score of this step is 500"),
    ("job-memory", "slurmstepd: error: Exceeded job memory limit at some point.",
     "memory limit of the job: 64 GB"),
    ("job-memory", "srun: error: nid001204: tasks 0-3: Out Of Memory",
     "srun: error: nid001204: tasks 0-3: Exited with exit code 1"),
    ("job-memory", "=>> PBS: job killed: mem 5120000kb exceeded limit 4194304kb",
     "PBS: job killed: walltime 70 exceeded limit 60"),
    ("job-memory", "[99.2] Memory cgroup out of memory: Killed process 91 (python3) total-vm:1432kB",
     "memory cgroup: 64 GB, out of 512"),
    ("disk-full", "OSError: [Errno 28] No space left on device: '/scratch/x/model.safetensors'",
     "free space on device: 12 GB"),
    ("disk-full-torch", "RuntimeError: basic_ios::clear: iostream error", "iostream ready"),
    ("disk-full-torch",
     "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 2768448 vs 2768336",
     "reading from pos 2768448"),
    ("quota", "OSError: [Errno 122] Disk quota exceeded", "disk quota: 40 of 50 GB"),
    ("collective-timeout",
     ("[rank1]:[E1122 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation "
     "timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE) ran for 600000 milliseconds before timing out."),
     "ProcessGroupNCCL watchdog timeout is 600000 ms"),
    ("collective-error", ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, "
     "unhandled system error"), "NCCL INFO Bootstrap : Using hsn0, no error"),
    ("module-missing", "[rank0]: ModuleNotFoundError: No module named 'flash_attn'",
     "flash_attn is optional (ModuleNotFoundError: No module named 'flash_attn'), using sdpa"),
    ("hub-gated", ("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-6)\n"
     "Access to model meta-llama/Llama-3-8B is restricted."), "401 rows were dropped by the client"),
    ("hub-missing", "Repository Not Found for url: https://huggingface.co/api/models/Qwen/Qwen3-0.6BB.",
     "step 404 loss 2.1"),
    ("no-network", "curl: (6) Could not resolve host: pypi.org", "name resolution took 2 ms"),
    ("zero-ranks", ("ZeRORuntimeException: The checkpoint being loaded used a DP world size of 2 but the "
     "current world size is 4. Automatic adjustment of ZeRO's optimizer state partitioning with a new world "
     "size is not currently supported."), "world size is 4, loading the checkpoint"),
    ("port-taken", "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
     "the address is in use by our own store"),
    ("wrong-python", "ERROR: Package 'trl' requires a different Python: 3.8.10 not in '>=3.9'",
     "Python 3.11.7 (main) on linux"),
    ("library-missing",
     "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
     "opened shared object file libcudart.so.12"),
    ("old-system", "python: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by python)",
     "glibc version 2.31 found"),
    ("gpu-absent", "RuntimeError: No CUDA GPUs are available", "4 CUDA GPUs are available"),
    ("gpu-broken", "RuntimeError: CUDA error: uncorrectable ECC error encountered",
     "ECC errors: 0 uncorrectable"),
    ("gpu-assert",
     "RuntimeError: CUDA error: device-side assert triggered", ("TORCH_USE_CUDA_DSA enables device-side "
     "assertions")),
    ("open-files", "OSError: [Errno 24] Too many open files: 'x'", "open files: 1024"),
    ("time-limit",
     "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***",
     "the time limit is 1h"),
    ("node-failure",
     ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-22T12:00:00 DUE TO NODE FAILURE, SEE "
     "SLURMCTLD LOG FOR DETAILS ***"), "restarts after a node failure: 0"),
    ("segfault", "Fatal Python error: Segmentation fault", "segmentation of images: no fault"),
)  # fmt: skip
SIGNALS = {
    "segfault": signal.SIGSEGV, "killed": signal.SIGKILL, "aborted": signal.SIGABRT,
    "bus-error": signal.SIGBUS,
    "illegal-instruction": signal.SIGILL, "terminated": signal.SIGTERM,
}  # fmt: skip
UNRELATED = [
    f"{start}\nValueError: {end}"
    for start in (
        "step 1 loss 2.0",
        "epoch 1\n[rank0]: done",
        "137 rows",
        "loading 404 files",
        "code 139 of table 2",
    )
    for end in ("7 is odd", "the batch has no rows", "expected 3 columns, got 4", "unknown label 'x'")
]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "small/1-01234567")
    directory.logs.mkdir(parents=True)
    (directory.path / "steps/train").mkdir(parents=True)
    return directory


def names(run: RunDirectory, text: str, code: int = 1) -> list[str]:
    """The rules that know a step with this log and this exit code."""
    run.log("train").write_text(text)
    record = {"v": 1, "job": "1", "attempt": 1, "code": code, "signal": "", "at": "2026-11-22T12:00:00Z"}
    (run.path / "steps/train/exit").write_text(json.dumps(record, separators=(",", ":")) + "\n")
    return [cause.rule.name for cause in diagnose(run, "train", RULES).causes]


@pytest.mark.parametrize(("rule", "log", "near_miss"), CASES)
def test_a_failure_is_known_and_what_resembles_it_is_not(
    run: RunDirectory, rule: str, log: str, near_miss: str
) -> None:
    assert rule in names(run, f"starting\nstep 1 loss 2.0\n{log}\n")
    assert names(run, f"starting\n{near_miss}\n") == []


@pytest.mark.parametrize(("rule", "number"), SIGNALS.items())
def test_a_signal_is_known_by_its_number_where_the_log_tells_nothing(
    run: RunDirectory, rule: str, number: int
) -> None:
    assert names(run, "step 1 loss 2.0\n", 128 + number) == [rule]
    assert names(run, f"rows: {128 + number}, code: {128 + number}\n", 1) == []


def test_a_guess_is_not_shown_beside_a_reason(run: RunDirectory) -> None:
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\nKilled\n"
    assert names(run, killed, 137) == ["job-memory"]
    assert names(run, "sh: 1: trian: not found\n", 127) == ["command-missing"]


@pytest.mark.parametrize("log", UNRELATED)
def test_what_no_rule_knows_is_unknown(run: RunDirectory, log: str) -> None:
    assert names(run, log) == []


def test_every_rule_has_a_case_and_reads_a_long_line_quickly() -> None:
    covered = {name for name, *_ in CASES} | set(SIGNALS) | {"command-missing"}
    assert {rule.name for rule in RULES} == covered
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.search(rule.pattern.encode(), b"a:1.b-[c]: " * 20_000, re.MULTILINE) is None


def test_the_trainers_own_error_and_its_hint_are_the_answer(run: RunDirectory) -> None:
    run.log("train").write_text(
        "step 1\nerror[memory]: DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 GB\n"
        "  hint: per_device_train_batch_size smaller\n"
    )
    (cause,) = diagnose(run, "train", RULES).causes
    assert (cause.rule.name, cause.rule.sure, cause.evidence.number) == ("memory", "certain", 2)
    assert cause.rule.fix == "per_device_train_batch_size smaller"
    run.log("train").write_text(
        'error[package]: zero_stage needs deepspeed\n  where: train.trl.x\n  hint: packages = ["deepspeed"]\n'
    )
    (cause,) = diagnose(run, "train", RULES).causes
    assert (cause.rule.cause, cause.rule.fix) == ("zero_stage needs deepspeed", 'packages = ["deepspeed"]')
    assert names(run, "error[E0382]: borrow of moved value\n") == []


def test_the_first_traceback_is_that_of_the_rank_that_failed_first(run: RunDirectory) -> None:
    head = 'step 1\n{0}Traceback (most recent call last):\n{0}  File "x.py", line 3, in f\n{0}    g()\n'
    run.log("train", 0).write_text(
        head.format("[rank0]: ") + "[rank0]: RuntimeError: Connection reset by peer\n"
    )
    run.log("train", 1).write_text(
        head.format("") + "KeyError: 'text'\n\nDuring handling of that\nTypeError\n"
    )
    diagnosis = diagnose(run, "train", RULES)
    assert not diagnosis.causes
    assert diagnosis.first is not None
    assert (diagnosis.first.log, diagnosis.first.text) == (run.log("train", 1), "KeyError: 'text'")
    assert diagnosis.first.before[-1] == "    g()"
