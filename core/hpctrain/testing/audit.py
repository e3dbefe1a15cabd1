"""What a block of code asks of the operating system, seen through Python's own audit events.

Late imports are allowed: an import reads code, which is the same for everybody who has this version,
and keeping plugins quick to load asks for them. So are files of packages that are installed plugins or
hpctrain itself. Clock and environment raise no audit event; planning twice under other ones shows them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import attrs

ACTS = (
    *(
        "subprocess.",
        "socket.",
        "urllib.",
        "http.",
        "ftplib.",
        "smtplib.",
        "sqlite3.",
        "shutil.",
        "tempfile.",
    ),
    *("fcntl.", "ctypes.dlopen", "pty.", "webbrowser.", "time.sleep", "signal.", "syslog."),
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "os.startfile"),
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.utime"),
    *("os.chmod", "os.chown", "os.chflags", "os.setxattr", "os.removexattr", "os.lockf"),
    *("os.putenv", "os.unsetenv", "os.chdir"),
)
"""Beginnings of the events that no pure hook raises."""

LOOKS = ("open", "os.listdir", "os.scandir", "os.walk", "glob.glob", "pathlib.Path.glob")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
STDLIB = os.path.dirname(os.__file__)  # noqa: PTH120  (compared with the file names of frames)


@attrs.frozen
class Act:
    """One thing that was done, and the line that did it."""

    event: str
    arguments: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.event} {self.arguments}".rstrip()


class Watch:
    """What was seen in one thread while it was on."""

    def __init__(self, readable: Iterable[str]) -> None:
        self.acts: list[Act] = []
        self._readable = tuple(f"{folder.rstrip('/')}/" for folder in readable)
        self._thread = threading.get_ident()
        self._busy = False

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """Keep an event that a pure function must not raise."""
        if self._busy or threading.get_ident() != self._thread:
            return
        self._busy = True  # what we do to describe an event raises events
        try:
            frame = sys._getframe(2)
            if not self._allowed(event, args, frame):
                self.acts.append(Act(event, _describe_arguments(event, args), _author(frame)))
        finally:
            self._busy = False

    def _allowed(self, event: str, args: tuple[Any, ...], frame: FrameType) -> bool:
        if event in LOOKS:
            return _imports(frame) or (not _writes(event, args) and self._may_read(args))
        return not event.startswith(ACTS)

    def _may_read(self, args: tuple[Any, ...]) -> bool:
        path = args[0] if args else ""
        if isinstance(path, int):
            return True  # a descriptor: whoever opened it was seen
        text = os.path.abspath(os.fsdecode(path) if path else ".")  # noqa: PTH100  (no pathlib in a hook)
        return f"{text}/".startswith(self._readable)


@contextmanager
def watched(readable: Iterable[str] = ()) -> Iterator[Watch]:
    """See what the block does; files below `readable` may be read."""
    global _current
    if not _installed:
        sys.addaudithook(_hook)
        _installed.append(True)
    byte_code, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    before, _current = _current, Watch(readable)
    try:
        yield _current
    finally:
        _current, sys.dont_write_bytecode = before, byte_code


_installed: list[bool] = []
_current: Watch | None = None


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _current is not None:
        _current.see(event, args)


def _imports(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(("<frozen importlib", "<frozen zipimport"))


def _writes(event: str, args: tuple[Any, ...]) -> bool:
    if event != "open":
        return False
    mode, flags = args[1], args[2]
    return bool(set(mode or "") & set("wax+")) or bool(isinstance(flags, int) and flags & WRITING)


def _describe_arguments(event: str, args: tuple[Any, ...]) -> str:
    how = " for writing" if _writes(event, args) else ""
    return f"{args[0]!r}{how}" if args else ""


def _author(frame: FrameType) -> str:
    """The innermost line outside the standard library: who asked for it."""
    at: FrameType | None = frame
    while at is not None and _library(at.f_code.co_filename):
        at = at.f_back
    innermost = at or frame
    return f"{innermost.f_code.co_filename}:{innermost.f_lineno} in {innermost.f_code.co_name}"


def _library(file: str) -> bool:
    return file.startswith(("<frozen", f"{STDLIB}/")) and "site-packages" not in file
