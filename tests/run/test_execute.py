"""One step on this machine: its log, its record, and what a failure says."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hpctrain.errors import NotReachable, StepFailed, StepRefused
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.execute import last_lines, run_step
from hpctrain.run.system.tools import Tools
from tests.patience import PATIENCE
from tests.run.conftest import python
from tests.run.test_tools import wait_for


def directory(tmp_path: Path, script: str) -> RunDirectory:
    contents = {"plan.json": "{}", "steps/env/job.sh": f"#!/bin/bash\n{script}\n"}
    return RunDirectory.create(tmp_path, "demo", "4f1c9a2e", contents)


def test_a_step_runs_in_its_run_directory_and_is_recorded(tmp_path: Path) -> None:
    lines: list[str] = []
    run = directory(tmp_path, 'echo "at $PWD with $MINE"; sleep 0.3; echo end')
    run_step(run, "env", Tools(), env={"MINE": "x"}, on_line=lines.append)
    assert run.log("env").read_text() == f"at {run.path} with x\nend\n"
    assert lines[-1] == "end"
    started, ended = run.record.read()
    assert (started["event"], started["step"]) == ("step-started", "env")
    assert (ended["event"], ended["code"]) == ("step-ended", 0)
    assert ended["seconds"] >= 0.3


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    run = directory(tmp_path, "seq 100; printf '1%%\\r2%%\\r\\n'; echo token hf_" + "a" * 30 + "; exit 3")
    with pytest.raises(StepFailed) as caught:
        run_step(run, "env", Tools(), env={})
    (problem,) = caught.value.problems
    assert problem.message == "step env of demo/1 ended with exit code 3"
    assert problem.notes[0] == "bash steps/env/job.sh"
    assert problem.notes[-1] == f"log: {run.log('env')}"
    assert problem.notes[1:-1] == (*map(str, range(83, 101)), "2%", "token ***")
    assert problem.hint == f"less {run.log('env')}"
    assert run.record.read()[-1]["code"] == 3


SAID = """\
echo busy
echo 'error[data-field]: the data has no field nn' >&2
printf '  %s\\n' 'where: train.trl.nn' 'note: a has: nb' 'hint: nn = "nb"' >&2
echo 'error: and more' >&2
exit 78"""


def test_what_a_step_says_of_the_run_file_is_a_refusal(tmp_path: Path) -> None:
    run = directory(tmp_path, SAID)
    for _ in range(2):  # an earlier attempt's sentences are not said again
        with pytest.raises(StepRefused) as caught:
            run_step(run, "env", Tools(), env={})
        first, second = caught.value.problems
        assert (caught.value.exit_code, first.code, first.where) == (2, "step-refused", "train.trl.nn")
        assert (first.message, first.hint) == ("the data has no field nn", 'nn = "nb"')
        assert first.notes == ("a has: nb",)
        assert (second.message, second.where) == ("and more", "")
    assert run.record.read()[-1]["code"] == 78


def test_that_code_without_a_sentence_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="ended with exit code 78") as caught:
        run_step(directory(tmp_path, "exit 78"), "env", Tools(), env={})
    assert caught.value.exit_code == 4


def test_a_step_without_script_is_said_before_anything_is_recorded(tmp_path: Path) -> None:
    run = directory(tmp_path, "true")
    with pytest.raises(NotReachable, match="demo/1 has no script of a step 'nope'"):
        run_step(run, "nope", Tools(), env={})
    assert run.record.read() == []


RUN = """
import sys
from pathlib import Path
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.steps.execute import run_step
from hpctrain.run.system.tools import Tools
run_step(RunDirectory(Path(sys.argv[1])), "env", Tools(), env={})
"""


def test_an_interrupt_is_recorded_without_a_code(tmp_path: Path) -> None:
    run = directory(tmp_path, "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    child = python(RUN, run.path)
    try:
        wait_for(run.log("env"))
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30 * PATIENCE)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in err
    assert run.log("env").read_text().endswith("saved\n")
    assert run.record.read()[-1] | {"time": "", "seconds": 0} == {
        "v": 1, "time": "", "event": "step-ended", "step": "env", "code": None, "seconds": 0,
    }  # fmt: skip


def test_the_end_of_a_large_log_is_read_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(5_000_000_000)
        file.seek(0, 2)
        file.write(b"\nlast\xff\n")
    assert last_lines(log, 2)[-1] == "last\ufffd"
