"""A command on a hostile file: in a process of its own, with little memory and time, and watched.

`Cage` starts one Python that has imported what the commands need, and forks for every case: what a case
costs is then what its file made it cost. It speaks JSON lines.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from attrs import frozen

MEMORY = 256 << 20
"""Bytes that one file may cost."""
SECONDS = 5
"""CPU seconds that one file may take."""
WALL = 60
"""Seconds until a case that waits for something is ended; the machine is shared."""
ROOM = 1 << 30
"""Bytes of address space beyond which a case is not let: the machine is shared."""
LARGEST_FILE = 64 << 20
COVERED = "COVERED:"
CRASHED = "CRASHED: no error of ours"
"""Below a traceback of Python; a log may hold one that is none of ours."""
WARM = (
    "hpctrain.session",
    "hpctrain.run.live",
    "hpctrain.cli.app",
    *(
        f"hpctrain.cli.commands.{name}"
        for name in ("check", "plan", "status", "diagnose", "logs", "metrics", "runs")
    ),
    "hpctrain_plugins.checkpoints.convert",
    "hpctrain_plugins.checkpoints.cli.command",
    "hpctrain_plugins.data.command",
    "hpctrain_plugins.schedulers.slurm",
    "hpctrain_plugins.schedulers.pbs",
    "hpctrain_plugins.schedulers.local",
    "hpctrain_job.staged",
    "hpctrain_job.resume",
    "hpctrain_tokens.indexed",
    "numpy",
    "yaml",
    "cattrs",
)
"""What commands import."""


@frozen
class Ended:
    """How a case ended: its exit code (negative: a signal), what it wrote, what it cost."""

    code: int
    out: str
    bytes: int
    seconds: float
    covered: tuple[int, ...] = ()
    """The lines of ours that ran, as numbers; only where that was asked for."""
    possible: tuple[int, ...] = ()
    """All lines of the functions that ran."""

    @property
    def fault(self) -> str:
        """What no file may bring about, whatever is in it."""
        if self.code == -signal.SIGXCPU or self.seconds > SECONDS:
            return f"took {self.seconds:.1f} s of CPU time"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        if CRASHED in self.out:
            return "a traceback: " + self.out.strip()[-300:]
        if self.code == 1 or "error[bug]" in self.out:
            return "exit 1: " + self.out.strip()[-300:]
        if self.bytes > MEMORY:
            return f"took {self.bytes >> 20} MiB"
        return ""


class Cage:
    """The process that forks for every case."""

    def __init__(self) -> None:
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            "HOME": "/nonexistent",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=environ,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(
        self, main: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str], *, cover: bool = False
    ) -> Ended:
        """`main` (`module:function`) with these words, in `folder`."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        case = {
            "main": main,
            "argv": list(argv),
            "cwd": str(folder),
            "environ": dict(environ),
            "cover": cover,
        }
        self._server.stdin.write(json.dumps(case) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return Ended(**{**answer, **{key: tuple(answer[key]) for key in ("covered", "possible")}})

    def close(self) -> None:
        self._server.communicate(timeout=WALL)


def serve() -> None:
    """Fork for every line of stdin."""
    for name in WARM:
        import_module(name)
    for line in sys.stdin:
        print(json.dumps(_case(json.loads(line))), flush=True)


def _case(case: Mapping[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os._exit(_caged(case, writing))
    os.close(writing)
    before = int.from_bytes(os.read(reading, 8), "little")
    out, _, lines = _output(reading, child).partition(COVERED)
    _, status, used = os.wait4(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": out,
        "bytes": used.ru_maxrss * 1024 - before,
        "seconds": used.ru_utime + used.ru_stime,
        # The first line: a process that the case forked says the same once more.
        **json.loads(lines.partition("\n")[0] or '{"covered": [], "possible": []}'),
    }


def _output(reading: int, child: int) -> str:
    """The last part of what the case writes until it ends; it is ended when it takes too long."""
    kept, end = b"", time.monotonic() + WALL
    while True:
        if not select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            os.killpg(child, signal.SIGKILL)
            break
        data = os.read(reading, 1 << 20)
        if not data:
            break
        kept = (kept + data)[-(1 << 20) :]
    os.close(reading)
    return kept.decode("utf-8", "replace")


def _caged(case: Mapping[str, Any], writing: int) -> int:
    """The case itself; whatever it raises is written as a traceback."""
    os.setsid()
    for number in (1, 2):
        os.dup2(writing, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.close(writing)
    sys.stdin = open(0)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(number, "w", errors="replace") for number in (1, 2))  # noqa: SIM115, PTH123
    size, resident = (
        int(pages) * resource.getpagesize() for pages in Path("/proc/self/statm").read_text().split()[:2]
    )
    os.write(1, resident.to_bytes(8, "little"))
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    os.chdir(case["cwd"])
    os.environ.clear()
    os.environ.update(case["environ"])
    module, _, name = case["main"].partition(":")
    main: Callable[[list[str]], int | None] = getattr(import_module(module), name)
    lines = Lines()
    if case["cover"]:
        sys.settrace(lines.trace)
    try:
        code = main(case["argv"]) or 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 2
    except BaseException:
        traceback.print_exc()
        print(CRASHED)
        code = 1
    sys.settrace(None)
    if lines.covered:
        print(COVERED, json.dumps({"covered": sorted(lines.covered), "possible": sorted(lines.possible())}))
    sys.stdout.flush()
    sys.stderr.flush()
    return code


class Lines:
    """The lines of ours that run; those of a module itself only say that it was imported."""

    def __init__(self) -> None:
        self.covered: set[int] = set()
        self._functions: dict[CodeType, str] = {}

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        code, module = frame.f_code, str(frame.f_globals.get("__name__"))
        if not module.startswith("hpctrain") or code.co_name == "<module>":
            return None
        if event == "call":
            self._functions[code] = module
        elif event == "line":
            self.covered.add(_number(module, frame.f_lineno))
        return self.trace

    def possible(self) -> set[int]:
        """Every line of the functions that ran; the first is where a function is defined."""
        return {
            _number(module, line)
            for code, module in self._functions.items()
            for _, _, line in code.co_lines()
            if line and line != code.co_firstlineno
        }


def _number(module: str, line: int) -> int:
    """The same wherever the checkout is."""
    return zlib.crc32(f"{module}:{line}".encode())


if __name__ == "__main__":
    serve()
