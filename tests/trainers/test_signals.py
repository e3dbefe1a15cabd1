"""A signal becomes a flag; the second TERM ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

CORE = Path(__file__).parents[2] / "core"
PROGRAM = """
import sys, time
from hpctrain_job.signals import Stop
stop = Stop().listen()
print("ready", bool(stop), flush=True)
for _ in range(int(sys.argv[1])):
    while not stop:
        time.sleep(0.01)
    print("heard", stop.name, flush=True)
    time.sleep(30 if sys.argv[1] == "2" else 0)
"""


def _started(times: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(times)],
        env={**os.environ, "PYTHONPATH": str(CORE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready False\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_is_a_flag(number: signal.Signals) -> None:
    process = _started(1)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30 * PATIENCE)
    assert (out, process.returncode) == (f"heard {number.name}\n", 0)


def test_the_second_term_ends_at_once() -> None:
    process = _started(2)
    process.terminate()
    assert process.stdout is not None
    assert process.stdout.readline() == "heard SIGTERM\n"
    process.terminate()
    out, _ = process.communicate(timeout=10 * PATIENCE)
    assert (out, process.returncode) == ("", -signal.SIGTERM)
