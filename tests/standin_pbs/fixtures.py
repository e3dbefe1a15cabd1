"""One stand-in for a test: its commands in a folder for PATH, and its settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.standin_pbs.mom import kill_session
from tests.standin_pbs.state import Folder

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("qsub", "qstat", "qselect", "qdel", "qhold", "qrls", "qrerun")
WRAPPER = """\
#!/bin/sh
PBS_STANDIN={folder} PYTHONPATH={root} exec {python} -m tests.standin_pbs.commands {name} "$@"
"""


class Standin:
    """A stand-in below `path`."""

    def __init__(self, path: Path) -> None:
        self.folder, self.bin = Folder(path / "pbs"), path / "pbs-bin"
        self.bin.mkdir(parents=True)
        for name in COMMANDS:
            words = {"folder": self.folder.path, "root": ROOT, "python": sys.executable, "name": name}
            self._program(name, WRAPPER.format(**words))
        self._program("mpiexec", Path(__file__).with_name("mpiexec.sh").read_text())

    def _program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def set(self, **settings: Any) -> None:
        """Change settings: history, down, frozen, lost, kill_delay, queues."""
        with self.folder.changing() as state:
            state.update(settings)

    def run(self, *argv: str, cwd: Path | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        """One of its commands."""
        words = [str(self.bin / argv[0]), *argv[1:]]
        return subprocess.run(words, cwd=cwd or ROOT, capture_output=True, text=True, timeout=60, **more)

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """The rows of all jobs."""
        rows: dict[str, dict[str, Any]] = self.folder.read()["jobs"]
        return rows

    def tagged(self, tag: str) -> list[str]:
        """The jobs whose name ends with a tag."""
        return [ident for ident, row in self.jobs.items() if row["Job_Name"].endswith(tag)]

    def clean(self) -> None:
        """End whatever still runs."""
        self.set(down=False, frozen=False)
        for row in self.jobs.values():
            if row["job_state"] in ("R", "E") and "session_id" in row:
                kill_session(row["session_id"], 9)
