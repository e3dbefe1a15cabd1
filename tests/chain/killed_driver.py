"""Submit a chain that is there already, and die by SIGKILL at the k-th event that is written.

Run as `python -m tests.chain.killed_driver DIRECTORY WHEN NUMBER`: WHEN is before or after; 0 never.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.record import Record
from hpctrain.run.live import LiveRun

WRITE = Record.append


def main() -> None:
    path, when, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    written = 0

    def append(self: Record, event_name: str, **fields: Any) -> None:
        nonlocal written
        written += 1
        if written == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        WRITE(self, event_name, **fields)
        if written == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Record.append = append  # type: ignore[method-assign]
    LiveRun.open(RunDirectory(path), dict(os.environ)).execute(lambda *_: None)


if __name__ == "__main__":
    main()
