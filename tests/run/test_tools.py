"""The only way out: environment, limits, process groups, what is remembered."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from hpctrain.errors import HpctrainError, NotReachable
from hpctrain.run.system.tools import ToolFailed, Tools
from tests.patience import PATIENCE, within
from tests.run.conftest import alive, python


def wait_for(path: Path, seconds: float = 20) -> str:
    until = time.monotonic() + seconds * PATIENCE
    while time.monotonic() < until:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


def gone(pid: int, seconds: float = 10) -> bool:
    until = time.monotonic() + seconds * PATIENCE
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def test_output_and_code_come_back() -> None:
    done = Tools().run(["sh", "-c", "echo out; echo err >&2; exit 3"], ok=(0, 3))
    assert (done.code, done.out, done.err) == (3, "out\n", "err\n")


def test_input_is_fed_and_otherwise_stdin_is_empty() -> None:
    tools = Tools()
    assert tools.run(["cat"], input="größe\n").out == "größe\n"
    assert tools.run(["cat"], timeout=5).out == ""


def test_words_are_never_read_by_a_shell(tmp_path: Path) -> None:
    hostile = "$(touch pwned); `touch pwned`\n&& touch pwned"
    assert Tools().run(["printf", "%s", hostile], cwd=tmp_path).out == hostile
    assert not list(tmp_path.iterdir())


def test_the_callers_shell_environment_is_not_inherited() -> None:
    with pytest.MonkeyPatch.context() as shell:
        for name in ("CANARY", "PYTHONPATH", "TERM", "LC_ALL"):
            shell.setenv(name, "1")
        seen = Tools().run(["env"], env={"MINE": "2"}).out.splitlines()
        assert "CANARY=1" in Tools().run(["env"], inherit=True).out
        assert "CANARY=1" in Tools(keep=("CANARY",)).run(["env"]).out
    names = {line.partition("=")[0] for line in seen}
    assert {"PATH", "HOME", "LC_ALL", "MINE"} <= names
    assert not names & {"CANARY", "PYTHONPATH", "TERM"}


def test_a_missing_program_is_not_reachable() -> None:
    with pytest.raises(NotReachable) as caught:
        Tools().run(["no-such-program-x", "y"])
    problem = caught.value.problems[0]
    assert problem.code == "not-here"
    assert problem.message == "no-such-program-x is needed, which is not on this computer"


def test_the_program_is_looked_for_on_the_path_that_it_gets(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o700)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert Tools().which("mine") is None
    assert Tools({"PATH": path}).which("mine") == str(program)
    assert Tools().run(["mine"], env={"PATH": path}).out == "found\n"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HpctrainError, match=r"cannot start true in .*/gone: no such file"):
        Tools().run(["true"], cwd=tmp_path / "gone")


def test_an_unexpected_code_shows_the_programs_own_words() -> None:
    with pytest.raises(ToolFailed) as caught:
        Tools().run(["sh", "-c", "echo 'fatal: no such ref' >&2; exit 128"])
    assert caught.value.done.code == 128
    assert caught.value.exit_code == 4
    problem = caught.value.problems[0]
    assert problem.message == "sh ended with exit code 128"
    assert problem.notes[-1] == "fatal: no such ref"


def test_a_signal_is_called_by_its_name() -> None:
    with pytest.raises(ToolFailed, match="sh was ended by SIGKILL"):
        Tools().run(["sh", "-c", "kill -9 $$"])


def test_a_limit_ends_the_whole_group(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    with within(10):
        with pytest.raises(NotReachable, match=r"sh did not end within 0\.5 s") as caught:
            Tools(grace=2).run(["sh", "-c", script], timeout=0.5)
        assert caught.value.problems[0].code == "timeout"
    assert gone(int((tmp_path / "pid").read_text()))


def test_calls_are_remembered_without_secrets() -> None:
    tools = Tools(secrets=["s3cret-value"])
    tools.hide("other-secret")
    tools.run(["echo", "s3cret-value", "--url=https://ada:pw@host/x", "other-secret"])
    with pytest.raises(ToolFailed) as caught:
        tools.run(["sh", "-c", "echo s3cret-value >&2; exit 1", "s3cret-value"])
    shown = f"{tools.calls} {caught.value} {caught.value.problems}"
    assert "s3cret-value" not in shown
    assert "other-secret" not in shown
    assert "ada:pw" not in shown
    assert [call.code for call in tools.calls] == [0, 1]
    assert tools.calls[0].argv[0] == "echo"
    assert tools.calls[0].seconds > 0


def test_a_stream_keeps_all_and_reports_the_last_line(tmp_path: Path) -> None:
    lines: list[str] = []
    log = tmp_path / "x.log"
    log.write_text("before\n")
    script = "echo one; echo two >&2; sleep 0.3; printf '10%%\\r20%%\\r'; sleep 0.3; printf end; exit 5"
    assert Tools().stream(["sh", "-c", script], log=log, on_line=lines.append) == 5
    assert log.read_bytes() == b"before\none\ntwo\n10%\r20%\rend"
    assert lines[-2:] == ["20%", "end"]
    assert "two" in lines


def test_a_stream_shows_no_secret_even_in_two_halves(tmp_path: Path) -> None:
    lines: list[str] = []
    tools = Tools(secrets=["t0ken-t0ken"])
    script = "printf 'a t0ken-'; sleep 0.3; echo t0ken; echo https://me:pass@h/; printf 't0ken-t'"
    tools.stream(["sh", "-c", script], log=tmp_path / "log", on_line=lines.append)
    assert (tmp_path / "log").read_text() == "a ***\nhttps://me:pass@h/\nt0ken-t"
    assert "https://***@h/" in lines
    assert "a ***" in lines or len(lines) < 3


def test_a_stream_ends_with_its_program_and_not_with_what_it_left_behind(tmp_path: Path) -> None:
    script = f"sleep 90 & echo $! > {tmp_path}/pid; echo done"
    with within(10):
        assert Tools().stream(["sh", "-c", script], log=tmp_path / "log") == 0
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_streams_limit_is_kept_and_said(tmp_path: Path) -> None:
    with pytest.raises(NotReachable, match=r"did not end within 0\.3 s"):
        Tools(grace=1).stream(["sleep", "60"], log=tmp_path / "log", timeout=0.3)


INTERRUPTED = """
import sys
from pathlib import Path
from hpctrain.run.system.tools import Tools
try:
    Tools(grace=float(sys.argv[3])).stream(["sh", "-c", sys.argv[2]], log=Path(sys.argv[1]))
except KeyboardInterrupt:
    sys.exit(130)
"""


def interrupted(tmp_path: Path, script: str, grace: float) -> tuple[int, float]:
    """Start a stream in another process, interrupt it when the script is ready: code and seconds."""
    child = python(INTERRUPTED, tmp_path / "log", script, grace)
    try:
        wait_for(tmp_path / "ready")
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30 * PATIENCE)
    finally:
        child.kill()
    return child.returncode, time.monotonic() - began


def test_an_interrupt_lets_the_group_tidy_up(tmp_path: Path) -> None:
    loop = "while :; do sleep 0.1; done"
    script = f"trap 'echo tidied; exit 1' TERM; sleep 60 & echo $$ $! > {tmp_path}/ready; {loop}"
    code, seconds = interrupted(tmp_path, script, 10)
    assert code == 130
    assert seconds < 8 * PATIENCE
    assert "tidied" in (tmp_path / "log").read_text()
    assert all(gone(int(pid)) for pid in (tmp_path / "ready").read_text().split())


def test_an_interrupt_while_a_program_starts_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C inside of Popen, when the program runs and nobody holds it yet."""
    started: list[subprocess.Popen[str]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[call-overload]
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Tools(grace=5).stream(["sleep", "60"], log=tmp_path / "log")
    assert started[0].returncode == -signal.SIGTERM
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_kills_a_group_that_does_not_listen(tmp_path: Path) -> None:
    script = f"trap '' TERM; sleep 60 & echo $$ $! > {tmp_path}/ready; while :; do sleep 1; done"
    code, _ = interrupted(tmp_path, script, 0.5)
    assert code == 130
    assert all(gone(int(pid)) for pid in (tmp_path / "ready").read_text().split())


def test_a_terminals_interrupt_reaches_us_alone(tmp_path: Path) -> None:
    groups: list[str] = []
    Tools().stream(["sh", "-c", "ps -o pgid= -p $$"], log=tmp_path / "log", on_line=groups.append)
    assert int(groups[-1]) != os.getpgrp()


def test_a_talkative_program_loses_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert Tools().stream(["seq", "200000"], log=log, on_line=lambda _: None) == 0
    assert log.read_text().split() == [str(n) for n in range(1, 200001)]


def test_pipes_and_threads_are_given_back(tmp_path: Path) -> None:
    tools = Tools()
    before = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    for _ in range(20):
        tools.run(["true"], input="x")
        tools.stream(["true"], log=tmp_path / "log")
        with pytest.raises(NotReachable):
            tools.run(["sleep", "9"], timeout=0.01)
    assert (len(list(Path("/proc/self/fd").iterdir())), threading.active_count()) == before


def test_only_tools_imports_subprocess() -> None:
    from tests.conftest import ROOT

    found = subprocess.run(
        ["grep", "-rlE", r"^\s*(import|from) subprocess", "--include=*.py", f"{ROOT}/core/hpctrain"],
        capture_output=True,
        text=True,
    )
    assert found.stdout.split() == [f"{ROOT}/core/hpctrain/run/system/tools.py"]
