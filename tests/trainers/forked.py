"""Ranks by fork: one process imports the trainer's libraries, and every rank starts as a copy of it.

Importing them takes longer than most tests train. `forked.py serve SOCKET` waits for ranks; `forked.py SOCKET
ARGUMENTS` is a rank as a test sees it: its output and environment become the copy's, signals are passed on,
and it ends as the copy ends. Both are run by the interpreter with torch, the latter without its `site`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

PASSED_ON = (signal.SIGUSR1, signal.SIGTERM)


def serve(path: str) -> list[str]:
    """Wait for ranks as long as the tests run; returns in every copy, with the arguments of its rank."""
    tests = os.getppid()
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{path}.new")
    server.listen(16)
    server.settimeout(5)
    Path(f"{path}.new").rename(path)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.getppid() == tests:
        try:
            rank, _ = server.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _copy(rank)
        rank.close()
    sys.exit(0)


def _copy(rank: socket.socket) -> list[str]:
    """Become the rank: its copy returns, and this process tells the test how that one ended."""
    said, files, _, _ = socket.recv_fds(rank, 1 << 20, 3)
    told = json.loads(said)
    pid = os.fork()
    if pid:
        rank.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        rank.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    rank.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["environ"])
    return list(told["arguments"])


def rank(path: str, arguments: list[str]) -> int:
    """Start a copy and wait for its end; the exit code, below 0 for a signal."""
    pid, early = 0, []

    def heard(number: int, _: FrameType | None) -> None:
        if not pid:
            early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, number)

    for passed in PASSED_ON:
        signal.signal(passed, heard)
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    told = {"cwd": str(Path.cwd()), "environ": dict(os.environ), "arguments": arguments}
    socket.send_fds(server, [json.dumps(told).encode()], [0, 1, 2])
    lines = server.makefile()
    pid = int(lines.readline())
    for number in early:
        os.kill(pid, number)
    return int(lines.readline())


if __name__ == "__main__":
    if sys.argv[1] != "serve":
        code = rank(sys.argv[1], sys.argv[2:])
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        sys.exit(code)
    import datasets  # noqa: F401
    import peft  # noqa: F401
    import torch  # noqa: F401
    import trl

    from hpctrain_trl import environment
    from hpctrain_trl.train import main

    trl.SFTTrainer, trl.SFTConfig  # noqa: B018  (imported when they are asked for)
    environment.end(main(serve(sys.argv[2])))
