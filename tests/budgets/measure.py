"""CPU time of whole processes, side by side, and their calls to the file system."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

RUNS = 25
CALLS = "%file,getdents64"
LIMIT = 120
BARE = "bare"


def cpu(argv: Sequence[str], env: Mapping[str, str]) -> float:
    """User and system seconds of one run with all its children."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        files = [(os.POSIX_SPAWN_DUP2, null, number) for number in (0, 1, 2)]
        pid = os.posix_spawn(argv[0], list(argv), env, file_actions=files)
    finally:
        os.close(null)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0, f"exit {code}: {' '.join(argv)}"
    return used.ru_utime + used.ru_stime


def ratios(
    bare: Sequence[str], commands: Mapping[str, Sequence[str]], env: Mapping[str, str], runs: int = RUNS
) -> dict[str, float]:
    """How many times the CPU of `bare` each command takes: minima of runs that take turns."""
    everything = {BARE: bare, **commands}
    least = dict.fromkeys(everything, float("inf"))
    for _ in range(runs):
        for name, argv in everything.items():
            least[name] = min(least[name], cpu(argv, env))
    return {name: least[name] / least[BARE] for name in commands}


def modules(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """How many modules a process of Python imports, its own included."""
    timed = {**env, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(argv, env=timed, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stderr.count("import time:") - 1


def calls(argv: Sequence[str], env: Mapping[str, str], out: Path) -> int:
    """How often a process asks the file system: opens, stats, links, listings."""
    traced = ("strace", "-f", "-c", "-e", f"trace={CALLS}", "-o", str(out), *argv)
    done = subprocess.run(traced, env=dict(env), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    total = re.search(r"^\S+\s+\S+\s+(?:\S+\s+)?(\d+)(?:\s+\d+)?\s+total$", out.read_text(), re.MULTILINE)
    assert total, out.read_text()
    return int(total[1])
