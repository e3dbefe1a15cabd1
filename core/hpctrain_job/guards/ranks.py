"""The ranks of one node, as children of its guard, and which of all they are."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpctrain_job.exit_codes import SAVED

_PDEATHSIG, _SUBREAPER = 1, 36
"""https://man7.org/linux/man-pages/man2/prctl.2.html"""


@dataclass(frozen=True)
class RankLayout:
    """How ranks lie on nodes."""

    nodes: int
    per_node: int
    world: int
    cores: int
    notice: int
    suffix: str

    def of_node(self, at: int) -> range:
        """The ranks of the node at this place."""
        return range(min(at * self.per_node, self.world), min((at + 1) * self.per_node, self.world))


class Ranks:
    """Each leads a session of its own, so that all that it started can be ended with it."""

    def __init__(self, script: Sequence[str]) -> None:
        self._script = script
        self._running: dict[int, int] = {}
        self._groups: set[int] = set()
        self.codes: list[int] = []
        """How those that ended ended, in this order."""
        _prctl(_SUBREAPER, 1)  # what a rank leaves behind becomes ours, and is found

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    @property
    def is_gone(self) -> bool:
        """Whether no process of them is left."""
        self._groups = {group for group in self._groups if _lives(group)}
        return not self._running and not self._groups and not _orphans()

    @property
    def failure(self) -> int:
        """The code of the first that ended badly; 0: none did."""
        return next((code for code in self.codes if code not in (0, SAVED)), 0)

    @property
    def code(self) -> int:
        """How they ended together."""
        return self.failure or (SAVED if SAVED in self.codes else 0)

    def start(self, environs: Sequence[Mapping[str, str]], cores: Sequence[Sequence[int]]) -> None:
        """One process for each environment, on its cores where they are known."""
        self.codes = []
        for local, environ in enumerate(environs):
            pid = os.fork()
            if pid == 0:
                self._become_rank(environ, cores[local] if cores else ())
            self._running[pid] = local
            self._groups.add(pid)

    def _become_rank(self, environ: Mapping[str, str], cores: Sequence[int]) -> None:
        try:
            os.setsid()
            _prctl(_PDEATHSIG, signal.SIGKILL)
            for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            if cores:
                os.sched_setaffinity(0, cores)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execvpe(self._script[0], [*self._script], environ)  # noqa: S606
        finally:
            os._exit(127)

    def look(self) -> None:
        """Collect those that ended."""
        while self._collect():
            pass

    def _collect(self) -> bool:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if self._running.pop(pid, None) is not None:
            code = os.waitstatus_to_exitcode(status)
            self.codes.append(code if code >= 0 else 128 - code)
        return pid != 0

    def tell(self, number: signal.Signals) -> None:
        """A signal for each rank, and for none of what it started."""
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End all that they started, now."""
        for group in (*self._groups, *_orphans()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)


def shares(ranks: int, cores_each: int) -> list[list[int]]:
    """The cores of each rank: neighbours, and both threads of a core together. None where this node lacks the
    cores, or lets nobody say."""
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (_first_thread(core), core))
    if ranks < 2 or len(cores) < ranks * cores_each:
        return []
    each = len(cores) // ranks
    return [cores[rank * each : (rank + 1) * each] for rank in range(ranks)]


def _first_thread(core: int) -> int:
    siblings = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        return int(siblings.read_text().replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return core


def _orphans() -> set[int]:
    """The groups of what ranks left behind, even from a session of its own; the guard's own is none."""
    groups = set()
    with contextlib.suppress(OSError):
        for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                groups.add(os.getpgid(int(pid)))
    return groups - {os.getpgrp()}


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
