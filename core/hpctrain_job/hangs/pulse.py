"""The pulse of a rank: a thread that writes how far each of its groups is, and where its main thread stands.

It is started by `hook/sitecustomize.py`, touches no collective and imports no torch: it looks for it among
the modules that the trainer has imported. Torch counts operations in C++, so DDP's reducer is seen too. Its
flight recorder is read when the node asks for it, by touching a file: then nothing moves any more.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from hpctrain_job.hangs import groups, recorder
from hpctrain_job.hangs.evidence import Operation
from hpctrain_job.hangs.processes import born
from hpctrain_job.hangs.recorder import Recording

FOLDER = "HPC_PULSE"
"""The variable that names the folder of a node's pulses; without it there are none."""
TICK = 0.5
ASK = "ask"
"""The file in the folder by which a node asks for the recorder, each time that it is touched."""
MOST_FRAMES = 40
MOST_GROUPS = 256
COLLECTIVES = ("distributed_c10d.py:", "_engine_run_backward")
"""Without a recorder: the ends of a stack that waits in an operation."""


class Pulse:
    """What one rank writes, tick by tick."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid = os.getpid()
        self.born = born(self.pid)
        self.document: dict[str, Any] = {}
        self._last_group = ""
        self._packed: dict[str, str] = {}
        self._answered = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        """Beat until the process ends; a fault in here is never the trainer's."""
        while True:
            time.sleep(TICK)
            with contextlib.suppress(Exception):
                self.tick()

    def tick(self) -> None:
        """Write once, where the process is a rank: it has groups, or had them."""
        world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
        handles = list(world.pg_map)[:MOST_GROUPS] if world is not None else []
        if not handles and not self.document:
            return
        with self._lock:
            if handles:
                self._look(world, handles)
            else:
                self._packed.clear()
            self._write(over=not handles)

    def close(self) -> None:
        """The last word of a process that ends in good order."""
        if self.document and self.pid == os.getpid():
            with contextlib.suppress(Exception), self._lock:
                self._write(over=True)

    def _look(self, world: Any, handles: list[Any]) -> None:
        names = {world.pg_names[handle]: handle for handle in handles}
        for name in names.keys() - self._packed.keys():
            self._packed[name] = groups.pack(world.pg_group_ranks[names[name]])
        packed = self._packed
        ours = {name: f"{name}({ranks})" for name, ranks in packed.items()}
        numbers = {ours[name]: handle._get_sequence_number_for_group() for name, handle in names.items()}
        before = self.document.get("numbers", {})
        moved = [group for group, number in numbers.items() if number != before.get(group)]
        self._last_group = moved[-1] if moved else self._last_group
        stack = _stack()
        self.document |= {
            "rank": handles[0].rank(),
            "world": handles[0].size(),
            "numbers": numbers,
            "members": {ours[name]: packed[name] for name in names},
            "stack": stack,
        }
        if moved:
            self.document |= _words(Recording())
        elif self._is_asked():
            shapes = {ours[name]: _shape(packed[name]) for name in names}
            self.document |= _words(_recorded(ours, shapes) or self._guess(stack, numbers))

    def _is_asked(self) -> bool:
        """Whether the node has asked since the last answer."""
        try:
            asked_at = (self.folder / ASK).stat().st_mtime_ns
        except FileNotFoundError:
            return False
        is_new, self._answered = asked_at != self._answered, asked_at
        return is_new

    def _guess(self, stack: list[str], numbers: Mapping[str, int]) -> Recording:
        """Without a recorder: it waits in what it began last, where its main thread is inside of torch."""
        if not self._last_group or not any(end in frame for frame in stack[-3:] for end in COLLECTIVES):
            return Recording()
        return Recording(Operation(self._last_group, numbers[self._last_group], "an operation"))

    def _write(self, *, over: bool) -> None:
        document = {
            "v": 1,
            "pid": self.pid,
            "born": self.born,
            "at": time.time(),
            "over": over,
            **self.document,
        }
        path = self.folder / f"{self.document['rank']}.{self.pid}.json"
        fresh = path.with_suffix(".fresh")
        fresh.write_text(json.dumps(document), encoding="utf-8")
        fresh.replace(path)


def start(environ: Mapping[str, str]) -> Pulse | None:
    """Begin to beat, where a folder is named and it is ours alone."""
    folder = private(environ.get(FOLDER, ""))
    if folder is None:
        return None
    pulse = Pulse(folder)
    threading.Thread(target=pulse.run, name="hpctrain-pulse", daemon=True).start()
    atexit.register(pulse.close)
    return pulse


def private(name: str) -> Path | None:
    """The folder, made where it is not there; None where anybody else could write to it."""
    if not name:
        return None
    folder = Path(name)
    with contextlib.suppress(OSError):
        folder.mkdir(0o700, exist_ok=True)
        facts = folder.lstat()
        if folder.is_dir() and not folder.is_symlink() and facts.st_uid == os.getuid():
            return folder if not facts.st_mode & 0o077 else None
    return None


def _recorded(ours: Mapping[str, str], shapes: Mapping[str, str]) -> Recording | None:
    read = recorder.reader(sys.modules.get("torch._C._distributed_c10d"))
    return recorder.recording(read(), ours, shapes) if read else None


def _words(recording: Recording) -> dict[str, Any]:
    first = recording.pending
    return {
        "pending": [first.group, first.number, first.name, first.size] if first else None,
        "order": recording.order,
        "orders": sorted(recording.orders),
    }


def _shape(packed: str) -> str:
    """The size and the step of a group: the same for all groups of one axis of a mesh."""
    return packed.partition(":")[2]


def _stack() -> list[str]:
    """The main thread's frames, outermost first."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    frames = list(itertools.islice(_outwards(frame), MOST_FRAMES))
    return [f"{Path(f.f_code.co_filename).name}:{f.f_code.co_name}" for f in reversed(frames)]


def _outwards(frame: FrameType | None) -> Any:
    while frame is not None:
        yield frame
        frame = frame.f_back
