"""The whole state of the stand-in: one JSON file, changed under one lock."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SERVER = "pbs"
NODES = ("node1", "node2")
NODE = {"ncpus": 64, "ngpus": 4}
FIRST: dict[str, Any] = {
    "next": 1,
    "jobs": {},
    "history": True,
    "down": False,
    "frozen": False,
    "lost": "",
    "kill_delay": 2,
    "default_queue": "capacity",
    "queues": {
        "capacity": {},
        "debug": {"walltime": 3600, "nodect": 1, "max_run": 1, "max_queued": 2},
    },
}
"""`lost`: "accepted" or "dropped", what becomes of the job whose answer breaks off next."""


class Folder:
    """The folder of one stand-in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_environment(cls) -> Folder:
        """The one that the commands speak for."""
        return cls(Path(os.environ["PBS_STANDIN"]))

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """The state, alone; what was changed is kept."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self._read()
            yield state
            new = self.path / "state.new"
            new.write_text(json.dumps(state))
            new.replace(self.path / "state.json")

    def read(self) -> dict[str, Any]:
        """The state as it is."""
        with self.changing() as state:
            return state

    def _read(self) -> dict[str, Any]:
        path = self.path / "state.json"
        state: dict[str, Any] = json.loads(path.read_text() if path.exists() else json.dumps(FIRST))
        return state


def now() -> str:
    """This moment as PBS writes it."""
    return time.strftime("%a %b %d %H:%M:%S %Y")


def full(ident: str) -> str:
    """The id with the server's name, whichever was given."""
    return ident if "." in ident else f"{ident}.{SERVER}"


def seconds(clock: str) -> int:
    """`HH:MM:SS` as seconds."""
    total = 0
    for part in str(clock).split(":"):
        total = total * 60 + int(part)
    return total


def clock(total: int) -> str:
    """Seconds as `HH:MM:SS`."""
    return f"{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"
