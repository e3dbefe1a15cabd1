"""The search for a secret that nobody named finds it where a test leaves it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.canary import ASKED, VARIABLE
from tests.conftest import ROOT

TOKEN = f"os.environ[{VARIABLE!r}]"
LEAKS = {
    "a file": (f"(tmp_path / '.log').write_text('x' + {TOKEN})", ".log"),
    # what it prints is waited for: a process that has just been started has no command line yet
    "a command line": (
        f"subprocess.Popen(['bash', '-c', 'echo; sleep 9; true', {TOKEN}], stdout=-1).stdout.readline()",
        "command line of bash",
    ),
    "nowhere": (f"subprocess.run(['true'], env=dict(os.environ)); assert {TOKEN}", "it is nowhere"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_found(tmp_path: Path, leak: str) -> None:
    line, place = LEAKS[leak]
    file = tmp_path / "test_it.py"
    file.write_text(f"import os, subprocess\ndef test_it(tmp_path):\n    {line}\n")
    places = ("-c", os.devnull, f"--rootdir={tmp_path}", f"--basetemp={tmp_path / 'base'}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.canary", *places, str(file)],
        env={**os.environ, ASKED: "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode == 0) is (leak == "nowhere"), done.stdout + done.stderr
    assert place in done.stdout
