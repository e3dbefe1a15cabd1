"""A person at a terminal: types a line at each prompt, and leaves what was shown."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Sequence

from tests.patience import PATIENCE

PROMPTS = (b"$ ", b"# ", b"Apptainer> ")


def typed(
    argv: Sequence[str], lines: Sequence[str], *, cwd: str, env: dict[str, str], limit: float = 60
) -> tuple[int, str]:
    """Start a program on a terminal of its own, type `lines`, and return its code and all it showed."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(argv[0], list(argv), env)
    left, shown, end = [f"{line}\n".encode() for line in lines], b"", time.monotonic() + limit * PATIENCE
    try:
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(master, 4096)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            shown += data
            if left and shown.endswith(PROMPTS):
                os.write(master, left.pop(0))
        else:
            os.kill(pid, 9)
    finally:
        os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode("utf-8", "replace")
